/** The long version of packages/nvme/test/fuzz.test.ts. */

import { expect, it } from 'vitest';
import { fuzzCapsules } from '../../packages/nvme/test/capsule-fuzz.js';
import { fuzzStrangers, fuzzTcp } from '../../packages/nvme/test/fuzz.js';
import { fuzzAnswers } from '../../packages/nvme/test/host-fuzz.js';
import { isTurn } from '../support/rounds.js';

const SEEDS = [11, 12, 13, 14];
/** A million commands and a million answers; a round has a fifth of them. */
const CAPSULE_SEEDS = Array.from({ length: 20 }, (_, i) => 21 + i).filter((_, i, all) => isTurn(i, all.length));

it.each(SEEDS)('a target takes what no host sends, seed %i', async (seed) => {
  expect((await fuzzTcp(seed, 1000, 'host')).ended).toBeGreaterThan(0);
});

it.each(SEEDS)('a host takes what no target sends, seed %i', async (seed) => {
  expect((await fuzzTcp(seed, 1000, 'target')).ended).toBeGreaterThan(0);
});

it.each(SEEDS)('a target takes bytes without any form, seed %i', (seed) => fuzzStrangers(seed, 25_000));

it.each(CAPSULE_SEEDS)('a target answers any of 50,000 commands once, or ends the queue, seed %i', async (seed) => {
  expect((await fuzzCapsules(seed, 50_000)).ended).toBeGreaterThan(0);
});

it.each(CAPSULE_SEEDS)('a host takes any of 50,000 answers, seed %i', async (seed) => {
  expect((await fuzzAnswers(seed, 50_000)).ended).toBeGreaterThan(100);
});
