/** Runs of the simulated cluster whose machines are also cut off one by one and come back in another order. `SWIZZLE_SEED=7` replays one of them, `SWIZZLE_SEEDS=2000` runs so many. */

import process from 'node:process';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Replica } from '../src/replica.js';
import { runSeed } from './run-seed.js';
import { swizzle } from './swizzle.js';

const SEED = process.env['SWIZZLE_SEED'];
const SEEDS = Number(process.env['SWIZZLE_SEEDS'] ?? 20);
const HUNT = 100;

describe('a cluster whose machines are cut off and come back one after another', () => {
  it('keeps every acknowledged record, its order and its redundancy', async () => {
    const met = { clogged: 0, most: 0, seals: 0, copies: 0 };
    for (const seed of SEED === undefined ? Array.from({ length: SEEDS }, (_, k) => k + 1) : [Number(SEED)]) {
      let of = { clogged: 0, most: 0 };
      const verdict = await runSeed(seed, (cluster) => {
        of = swizzle(cluster);
      });
      expect(verdict.problems, `SWIZZLE_SEED=${seed}`).toEqual([]);
      met.clogged += of.clogged;
      met.most = Math.max(met.most, of.most);
      met.seals += verdict.seals;
      met.copies += verdict.copies;
    }
    expect(met.most).toBeGreaterThan(1);
    for (const [name, count] of Object.entries(met)) expect(count, name).toBeGreaterThan(0);
  }, 600_000); // As long as somebody asks for.
});

describe('a planted bug is found', () => {
  afterEach(() => void vi.restoreAllMocks());

  it('that skips the check of epochs', async () => {
    vi.spyOn(Replica.prototype, 'checkEpoch').mockImplementation(() => {});
    for (let seed = 1; seed <= HUNT; seed++) if ((await runSeed(seed, swizzle)).problems.length > 0) return;
    expect.unreachable(`${HUNT} seeds find nothing`);
  });
});
