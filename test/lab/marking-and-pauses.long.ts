/** The same flows at 100 Gb/s, with a PI controller in the place of RED, and with pauses alone. docs/lab.md has the tables. */

import { describe, expect, test } from 'vitest';
import { failuresOf, queueOf, runBuiltIn } from './run-built-in.js';

test.each([2, 10, 16, 64])('100 Gb/s: %i flows', async (flows) => {
  expect(failuresOf(await runBuiltIn(`dcqcn-100g-n${flows}`))).toEqual([]);
});

test.each([10, 64])('a PI controller holds the queue of %i flows at its reference', async (flows) => {
  expect(failuresOf(await runBuiltIn(`dcqcn-pi-n${flows}`))).toEqual([]);
});

describe('PFC alone', () => {
  const MEMORY_BYTES = 4_194_304;
  const ALPHA = 1 / 8;

  test.each([2, 10, 16, 64])('%i ingress queues fill their dynamic thresholds', async (flows) => {
    const result = await runBuiltIn(`pfc-n${flows}`);
    expect(failuresOf(result)).toEqual([]);
    const thresholds = (flows * ALPHA * MEMORY_BYTES) / (1 + flows * ALPHA);
    const { maxBytes } = queueOf(result, `s0>h${flows}`);
    expect(maxBytes / thresholds).toBeGreaterThan(0.9);
    expect(maxBytes / thresholds).toBeLessThan(1.1);
  });
});
