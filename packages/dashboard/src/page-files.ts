/** The files of the page: what `npm run build` has put into dist/dashboard, and uPlot as its package brings it. */

import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { RoceError } from 'rocev2/internal/core';
import type { PageFile } from './server.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** The folder that mirrors src/dashboard, from there and from itself. */
const BUILT = new URL('../../dist/dashboard/', import.meta.url);

/** By path, as the page's modules import each other: `index.html`, `page/main.js`, `messages/lab.js`. Rejects with ERR_ROCE_IO without a build. */
export async function loadPageFiles(): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>();
  const add = async (path: string, url: URL | string) => {
    files.set(path, { type: TYPES[extname(path)], body: await readFile(url) });
  };
  try {
    await add('index.html', new URL('page/index.html', BUILT));
    for (const folder of ['messages', 'page']) {
      for (const name of await readdir(new URL(`${folder}/`, BUILT))) {
        if (['.js', '.css'].includes(extname(name)))
          await add(`${folder}/${name}`, new URL(`${folder}/${name}`, BUILT));
      }
    }
  } catch (cause) {
    throw new RoceError('ERR_ROCE_IO', 'the page of the dashboard is not there', 'npm run build makes it', { cause });
  }
  const { resolve } = createRequire(import.meta.url);
  await add('uplot.js', resolve('uplot/dist/uPlot.iife.min.js'));
  await add('uplot.css', resolve('uplot/dist/uPlot.min.css'));
  return files;
}
