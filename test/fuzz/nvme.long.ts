/** The long version of test/nvme/fuzz.test.ts. */

import { expect, it } from 'vitest';
import { fuzzStrangers, fuzzTcp } from '../nvme/fuzz.js';

const SEEDS = [11, 12, 13, 14];

it.each(SEEDS)('a target takes what no host sends, seed %i', async (seed) => {
  expect((await fuzzTcp(seed, 1000, 'host')).ended).toBeGreaterThan(0);
});

it.each(SEEDS)('a host takes what no target sends, seed %i', async (seed) => {
  expect((await fuzzTcp(seed, 1000, 'target')).ended).toBeGreaterThan(0);
});

it.each(SEEDS)('a target takes bytes without any form, seed %i', (seed) => fuzzStrangers(seed, 25_000));
