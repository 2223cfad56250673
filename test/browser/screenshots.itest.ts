/** The screenshots of the documents: the scripts still make each of them, of about the size of the one in the documents, and none is empty. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { chromiumPath, launch } from './browser.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDERS = ['packages/dashboard/docs/pictures', 'packages/kv/docs/pictures'];
const SCRIPTS = readdirSync(join(ROOT, 'scripts')).filter((name) => /^screenshots.*\.js$/.test(name));
/** A page that lacks a chart, or shows an error in place of its content, is shorter than this share of the picture in the documents. */
const LEAST_SHARE_OF_HEIGHT = 0.75;
/** Of the pixels: text and charts on an empty background are above it. */
const LEAST_INK = 0.03;
/** The scripts let programs run for the time that the charts show. */
const SCRIPT_MS = 400_000;

interface Look {
  readonly width: number;
  readonly height: number;
  /** The share of pixels that have not the most frequent colour. */
  readonly ink: number;
}

/** What stands in a page of Chromium: it decodes the picture and counts the colours. */
const LOOK = `async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const { width, height } = image;
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const counts = new Map();
  for (const pixel of new Uint32Array(context.getImageData(0, 0, width, height).data.buffer))
    counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return { width, height, ink: 1 - Math.max(...counts.values()) / (width * height) };
}`;

const look = (page: Page, png: Uint8Array): Promise<Look> =>
  page.evaluate(`(${LOOK})('data:image/png;base64,${Buffer.from(png).toString('base64')}')`);

describe.runIf(isBuilt && chromiumPath !== undefined)('the screenshots of the documents', () => {
  /** By their names, the pictures of the documents. */
  const pictures = new Map(
    FOLDERS.flatMap((folder) =>
      readdirSync(join(ROOT, folder))
        .filter((name) => name.endsWith('.png'))
        .map((name) => [name, join(ROOT, folder, name)] as const),
    ),
  );
  let browser: Browser;
  let page: Page;
  let made: string;
  beforeAll(async () => {
    browser = await launch();
    page = await browser.newPage();
    made = mkdtempSync(join(tmpdir(), 'rocev2-screenshots-'));
  });
  afterAll(async () => {
    await browser.close();
    rmSync(made, { recursive: true });
  });

  it('an empty page is found', async () => {
    await page.setContent('<h1>A title and nothing else</h1>');
    const { ink } = await look(page, await page.screenshot());
    expect(ink).toBeLessThan(LEAST_INK);
  });

  it.each([...pictures])('%s in the documents is not empty', async (_, path) => {
    const { ink } = await look(page, readFileSync(path));
    expect(ink).toBeGreaterThan(LEAST_INK);
  });

  it(
    'are all made by the scripts, of about the size that they have in the documents, and not empty',
    async () => {
      // Side by side: they wait for most of their time.
      const run = (script: string) =>
        promisify(execFile)(process.execPath, [join(ROOT, 'scripts', script), made], {
          timeout: SCRIPT_MS, // timer: a limit
        });
      for (const ended of await Promise.allSettled(SCRIPTS.map(run)))
        if (ended.status === 'rejected') throw ended.reason;
      expect(readdirSync(made).sort()).toEqual([...pictures.keys()].sort());
      for (const [name, path] of pictures) {
        const before = await look(page, readFileSync(path));
        const now = await look(page, readFileSync(join(made, name)));
        expect(now.width, name).toBe(before.width);
        expect(now.height, name).toBeGreaterThan(before.height * LEAST_SHARE_OF_HEIGHT);
        expect(now.ink, name).toBeGreaterThan(LEAST_INK);
      }
    },
    SCRIPT_MS,
  );
});
