/** Sums of fragments in a thread, and without one where its module is missing. */

import { existsSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { combinerOf, portableCombine } from '../src/coding/combiner.js';
import { erasureCode } from '../src/coding/erasure-code.js';
import { CodingThread } from '../src/live/coder.js';

const BUILT = new URL('../../../build/packages/extents/src/live/coding-thread.js', import.meta.url);
const { rows, data } = erasureCode('rs-6-3');
const sources = Array.from({ length: data }, (_, k) => Buffer.alloc(8192, k + 1));

let thread: CodingThread;
afterEach(() => thread.close());

describe('sums in a thread', () => {
  it.runIf(existsSync(BUILT))('are those of this thread, many at a time', async () => {
    thread = new CodingThread(BUILT);
    const right = await combinerOf(portableCombine).combine(rows, sources);
    const all = await Promise.all(Array.from({ length: 4 }, () => thread.combine(rows, sources)));
    for (const sums of all) expect(sums).toEqual(right);
    expect(thread.isRunning).toBe(true);
  });

  it('are made here where the module of the thread is missing', async () => {
    thread = new CodingThread(new URL('./nowhere.js', import.meta.url));
    const right = await combinerOf(portableCombine).combine(rows, sources);
    expect(await Promise.all([thread.combine(rows, sources), thread.combine(rows, sources)])).toEqual([right, right]);
    expect(thread.isRunning).toBe(false);
    expect(await thread.combine(rows, sources)).toEqual(right);
  });
});
