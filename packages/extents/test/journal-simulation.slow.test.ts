/** Nodes with journals under faults, in virtual time: the files of one node beside a model of them, and a cluster. `EXTENT_SEED=7` replays one seed of the cluster. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { repetitions } from '../../../test/support/repetitions.js';
import { FrameFormat } from '../src/journal-frame.js';
import type { Cluster } from './cluster.js';
import { describeOneSeed } from './one-seed.js';
import { runJournalSeed } from './run-journal-seed.js';
import { type JournalBugs, runJournaledDisk } from './run-journaled-disk.js';

const DISK_SEEDS = repetitions(20, 80);
const SEEDS = repetitions(5, 10);
const HUNT = 60;

afterEach(() => void vi.restoreAllMocks());

describeOneSeed('EXTENT_SEED', runJournalSeed);

describe('the files of a node with a journal', () => {
  /** The first seed that finds something. */
  async function firstFind(bugs?: JournalBugs, seeds = HUNT): Promise<number | undefined> {
    for (let seed = 1; seed <= seeds; seed++) if ((await runJournaledDisk(seed, bugs)).length > 0) return seed;
    return undefined;
  }

  it('have what was synced after every crash, also one in the middle of a start', async () => {
    for (let seed = 1; seed <= DISK_SEEDS; seed++) expect(await runJournaledDisk(seed), `seed ${seed}`).toEqual([]);
  });

  it('would not, if a change counted before the journal is synced', async () => {
    expect(await firstFind({ believesJournal: true })).toBeDefined();
  });

  it('would not, if the journal were used again before a file is synced', async () => {
    expect(await firstFind({ believesFiles: true })).toBeDefined();
  });

  it('would not, if torn frames were taken for whole ones', async () => {
    vi.spyOn(FrameFormat.prototype, 'isIntact').mockReturnValue(true);
    expect(await firstFind()).toBeDefined();
  });
});

describe('a simulated cluster with journals', () => {
  const sum = { acked: 0, seals: 0, copies: 0, repaired: 0, failovers: 0 };

  it('keeps every acknowledged record, its order and its redundancy', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await runJournalSeed(seed);
      expect(verdict.problems, `EXTENT_SEED=${seed}`).toEqual([]);
      for (const name of Object.keys(sum) as Array<keyof typeof sum>) sum[name] += verdict[name];
    }
  });

  it('meets seals, failovers, copies and repairs', () => {
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(0);
  });

  /** The first seed with losses of power that finds something. */
  async function firstFind(twist: (cluster: Cluster) => void): Promise<number | undefined> {
    for (let seed = 3; seed <= 3 * HUNT; seed += 3)
      if ((await runJournalSeed(seed, twist)).problems.length > 0) return seed;
    return undefined;
  }

  it('finds appends that are acknowledged before the journal is synced', async () => {
    const find = await firstFind((cluster) => {
      cluster.believesJournals = true;
    });
    expect(find).toBeDefined();
  });

  it('finds journals that are used again before the files of extents are synced', async () => {
    const find = await firstFind((cluster) => {
      cluster.believesExtentFiles = true;
    });
    expect(find).toBeDefined();
  });
});
