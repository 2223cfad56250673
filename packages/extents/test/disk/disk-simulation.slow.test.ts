/** A disk over a cluster under faults, in virtual time, with a model beside it. `DISK_SEED=7` replays one seed and prints what happened. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { describeOneSeed } from '../one-seed.js';
import { PLANTED } from './planted.js';
import { runDiskSeed } from './run-disk-seed.js';

const SEEDS = 6;
/** Of the 300 that the long suite runs. */
const HUNT = 20;

describeOneSeed('DISK_SEED', runDiskSeed);

describe('a disk over a simulated cluster', () => {
  const sum = { acknowledged: 0, owners: 0, fenced: 0, checkpoints: 0, freed: 0, moved: 0, snapshots: 0, clones: 0 };

  it('reads as it was written, through faults and other owners, and so do its snapshots and clones', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await runDiskSeed(seed);
      expect(verdict.problems, `DISK_SEED=${seed}`).toEqual([]);
      for (const name of Object.keys(sum) as Array<keyof typeof sum>) sum[name] += verdict[name];
    }
  });

  it.each([47])(
    'keeps it with seed %i, which has a copy read a log that is cleaned behind a newer checkpoint',
    async (seed) => {
      expect((await runDiskSeed(seed)).problems).toEqual([]);
    },
  );

  it('meets owners that are fenced, checkpoints, cleaning, snapshots and clones', () => {
    for (const [name, count] of Object.entries(sum)) expect(count, name).toBeGreaterThan(0);
  });

  it('runs the same again with the same seed', async () => {
    expect(await runDiskSeed(2)).toEqual(await runDiskSeed(2));
  });
});

describe('a planted bug is found', () => {
  afterEach(() => void vi.restoreAllMocks());

  it.each(Object.entries(PLANTED))('that %s', async (_, plant) => {
    plant();
    for (let seed = 1; seed <= HUNT; seed++) if ((await runDiskSeed(seed)).problems.length > 0) return;
    expect.unreachable(`${HUNT} seeds find nothing`);
  });
});
