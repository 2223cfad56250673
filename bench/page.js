// What the page of packages/page achieves in Chromium: `npm run bench:page -- --reps 5`. Medians of cold starts, each in a browser of its own.
//
// Aims: the first packet within 1,000 ms; DCQCN with 16 flows at 1/20 of real time; 60 frames per second during a run.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values } = parseArgs({ options: { reps: { type: 'string', default: '5' } } });
const reps = Number(values.reps);
const executablePath =
  process.env['CHROMIUM'] ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path));
if (executablePath === undefined) throw new Error('there is no Chromium here; CHROMIUM may name one');
/** Of the scene of DCQCN. */
const VIRTUAL_MS = 20;
const WAIT_MS = 120_000;

/** In the page: counts frames from the first packet to the end of the runs. */
const COUNT_FRAMES = `
  const seen = { frames: 0, firstPacketMs: 0, completeMs: 0 };
  globalThis.seen = seen;
  const onFrame = () => {
    const nowMs = performance.now();
    if (seen.firstPacketMs === 0 && document.querySelector('.rung') !== null) seen.firstPacketMs = nowMs;
    if (document.querySelector('.scene[data-state=complete]') !== null) {
      seen.completeMs = nowMs;
      return;
    }
    if (seen.firstPacketMs > 0) seen.frames++;
    requestAnimationFrame(onFrame);
  };
  requestAnimationFrame(onFrame);`;

/** In the page: the milliseconds from a new address to the end of its runs. */
const TIME_AGAIN = `async (hash) => {
  const startMs = performance.now();
  location.hash = hash;
  const isComplete = () => document.querySelector('.scene[data-state=complete]') !== null;
  while (isComplete()) await new Promise(requestAnimationFrame);
  while (!isComplete()) await new Promise(requestAnimationFrame);
  return performance.now() - startMs;
}`;

const folder = await mkdtemp(join(tmpdir(), 'rocev2-page-'));
execFileSync(process.execPath, [fileURLToPath(new URL('../scripts/page.js', import.meta.url)), folder]);
const address = pathToFileURL(join(folder, 'index.html')).href;

/** Opens a scene in a new browser, and counts frames until its runs are complete. Then the runs of `again` are timed in the same page. */
const measure = async (/** @type {string} */ hash, again = '') => {
  const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
  try {
    const page = await browser.newPage();
    await page.addInitScript(COUNT_FRAMES);
    await page.goto(`${address}${hash}`);
    await page.waitForFunction('seen.completeMs > 0', undefined, { timeout: WAIT_MS });
    const { frames, firstPacketMs, completeMs } = await page.evaluate(() => Reflect.get(globalThis, 'seen'));
    const againMs = again === '' ? 0 : await page.evaluate(`(${TIME_AGAIN})(${JSON.stringify(again)})`);
    return { firstPacketMs, completeMs, againMs, framesPerSecond: (1000 * frames) / (completeMs - firstPacketMs) };
  } finally {
    await browser.close();
  }
};

const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
const livelock = [];
const dcqcn = [];
for (let rep = 0; rep < reps; rep++) {
  livelock.push(await measure('#livelock?lang=en'));
  dcqcn.push(await measure('#dcqcn?flows=16&lang=en', '#dcqcn?flows=16&lang=en&seed=2'));
}
await rm(folder, { recursive: true });
const first = median(livelock.map(({ firstPacketMs }) => firstPacketMs));
const frames = median([...livelock, ...dcqcn].map(({ framesPerSecond }) => framesPerSecond));
/** How much longer than its virtual time a run takes. @param {number[]} realMs */
const slowdown = (realMs) => `1/${(median(realMs) / VIRTUAL_MS).toFixed(1)} of real time`;
const lines = [
  ['first packet visible after the start of navigation', `${first.toFixed(0)} ms`, 'aim: below 1,000 ms'],
  ['DCQCN, 16 flows, with the load of the page', slowdown(dcqcn.map(({ completeMs }) => completeMs)), 'no aim'],
  ['the same with another seed', slowdown(dcqcn.map(({ againMs }) => againMs)), 'aim: at least 1/20'],
  ['frames per second from the first packet to the end', frames.toFixed(1), 'aim: 60'],
];
for (const line of lines) console.log(line.join('; '));
