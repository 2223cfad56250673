/** The files of the page, as the build has put them into dist/page. */

import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { RoceError } from 'rocev2/internal/core';
import type { PageFile } from './server.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** Where the build puts the page; the same from src and dist. */
const BUILT = new URL('../dist/page/', import.meta.url);

/** By path. Rejects with ERR_ROCE_IO without a build. */
export async function loadPageFiles(): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>();
  const add = async (path: string, url: URL | string) => {
    files.set(path, { type: TYPES[extname(path)], body: await readFile(url) });
  };
  try {
    await add('index.html', new URL('index.html', BUILT));
    for (const name of ['main.js', 'style.css']) await add(`page/${name}`, new URL(name, BUILT));
  } catch (cause) {
    throw new RoceError('ERR_ROCE_IO', 'the page of the dashboard is not there', 'npm run build makes it', { cause });
  }
  return files;
}
