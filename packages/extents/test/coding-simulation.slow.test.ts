/** A cluster that codes its sealed extents, under the same faults as others; and then any three of its nodes are gone. `EXTENT_SEED=7` replays one seed. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { LiveNodes } from '../src/live-nodes.js';
import type { Cluster } from './cluster.js';
import { describeOneSeed } from './one-seed.js';
import { runCodingSeed } from './run-coding-seed.js';

const SEEDS = 16;
const HUNT = 20;

describeOneSeed('EXTENT_SEED', runCodingSeed);

describe('a simulated cluster with codes', () => {
  const sum = { acked: 0, seals: 0, codings: 0, rebuilds: 0, reconstructed: 0 };

  it('keeps every acknowledged record, also without any three of its nodes', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await runCodingSeed(seed);
      expect(verdict.problems, `EXTENT_SEED=${seed}`).toEqual([]);
      for (const name of Object.keys(sum) as Array<keyof typeof sum>) sum[name] += verdict[name];
    }
  });

  it('codes extents, makes fragments anew, and reads around those that are gone', () => {
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(0);
  });
});

describe('a planted bug is found', () => {
  afterEach(() => void vi.restoreAllMocks());

  /** Whether one of the first seeds finds something. */
  async function isFound(twist?: (cluster: Cluster) => void): Promise<boolean> {
    for (let seed = 1; seed <= HUNT; seed++) if ((await runCodingSeed(seed, twist)).problems.length > 0) return true;
    return false;
  }

  it('that gives replicas up before the fragments are durable', async () => {
    const twist = (cluster: Cluster) => {
      cluster.believesFragments = true;
    };
    expect(await isFound(twist)).toBe(true);
  });

  it('that puts all fragments on three nodes', async () => {
    const { choose } = LiveNodes.prototype;
    vi.spyOn(LiveNodes.prototype, 'choose').mockImplementation(function (this: LiveNodes, count, options) {
      const chosen = choose.call(this, Math.min(count, 3), options);
      return Array.from({ length: count }, (_, k) => chosen[k % chosen.length]);
    });
    expect(await isFound()).toBe(true);
  });
});
