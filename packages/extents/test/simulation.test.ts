/** A cluster of extent nodes under faults of disks, power and network, in virtual time. `EXTENT_SEED=7` replays one seed and prints its faults. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { repetitions } from '../../../test/support/repetitions.js';
import { Replica } from '../src/replica.js';
import { StreamManager } from '../src/stream-manager.js';
import type { Cluster } from './cluster.js';
import { describeOneSeed } from './one-seed.js';
import { runSeed } from './run-seed.js';

const SEEDS = repetitions(12, 24);
const HUNT = 60;

describeOneSeed('EXTENT_SEED', runSeed);

describe('a simulated cluster', () => {
  const sum = { acked: 0, seals: 0, copies: 0, repaired: 0, failovers: 0 };

  it('keeps every acknowledged record, its order and its redundancy', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await runSeed(seed);
      expect(verdict.problems, `EXTENT_SEED=${seed}`).toEqual([]);
      for (const name of Object.keys(sum) as Array<keyof typeof sum>) sum[name] += verdict[name];
    }
  });

  it('meets seals, failovers, copies and repairs', () => {
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(0);
  });

  it('runs the same again with the same seed', async () => {
    expect(await runSeed(3)).toEqual(await runSeed(3));
  });
});

describe('a node that comes back when a fourth replica was made in its place', () => {
  it('has its replica again, and the fourth goes before the cluster counts as whole', async () => {
    expect((await runSeed(70_548)).problems).toEqual([]);
  });
});

describe('an old copy of a disk that nobody knows from a restart, and then the power of all', () => {
  const SEED = 8553;
  it('loses nothing: records of the others say what all have had', async () => {
    expect((await runSeed(SEED)).problems).toEqual([]);
  });
});

describe('a planted bug is found', () => {
  afterEach(() => void vi.restoreAllMocks());

  /** The first seed that finds something. */
  async function firstFind(twist?: (cluster: Cluster) => void): Promise<number | undefined> {
    for (let seed = 3; seed <= 3 * HUNT; seed += 3) if ((await runSeed(seed, twist)).problems.length > 0) return seed;
    return undefined;
  }

  it('that skips the check of epochs', async () => {
    vi.spyOn(Replica.prototype, 'checkEpoch').mockImplementation(() => {});
    expect(await firstFind()).toBeDefined();
  });

  it('that acknowledges after two of three', async () => {
    const twist = (cluster: Cluster) => {
      cluster.believesLastSecondary = true;
    };
    expect(await firstFind(twist)).toBeDefined();
  });

  it('that seals at the longest', async () => {
    vi.spyOn(StreamManager.prototype, 'chooseLength').mockImplementation(({ replicas }) =>
      replicas.length === 0
        ? { length: undefined, reason: 'nobody answers' }
        : { length: Math.max(...replicas.map(({ length }) => length)) },
    );
    expect(await firstFind()).toBeDefined();
  });
});
