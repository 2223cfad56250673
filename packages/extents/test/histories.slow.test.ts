/** Histories of appends, reads and block writes under faults are checked by checkers that know nothing of extents. */

import { describe, expect, it } from 'vitest';
import { randomUnit } from '../../../src/core/random.js';
import { repetitions } from '../../../test/support/repetitions.js';
import { type HistoryVerdict, runDiskHistory, runStreamHistory } from './histories.js';

const SEEDS = repetitions(4, 60);

async function check(run: (seed: number) => Promise<HistoryVerdict>): Promise<void> {
  let [reads, writes] = [0, 0];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const verdict = await run(seed);
    expect(verdict.problem, `seed ${seed}`).toBeUndefined();
    reads += verdict.reads;
    writes += verdict.writes;
  }
  expect(Math.min(reads, writes)).toBeGreaterThan(10 * SEEDS);
}

async function firstFind(run: (seed: number) => Promise<HistoryVerdict>): Promise<string | undefined> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problem } = await run(seed);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

describe('a stream', () => {
  it('is read in order and without gaps, to the last record but one at least', () =>
    check((seed) => runStreamHistory(seed)));

  it('of which a reader returns what it has read before is found out', async () => {
    const run = (seed: number) => {
      let known: string[] | undefined;
      return runStreamHistory(seed, (ids, random) => {
        if (known === undefined || randomUnit(random) < 0.3) known = ids;
        return known;
      });
    };
    expect(await firstFind(run)).toContain('a read lacks');
  });
});

describe('a disk', () => {
  it('is linearizable for each block, also when another owner takes it over', () =>
    check((seed) => runDiskHistory(seed)));

  it('of which a client returns a block that was replaced is found out', async () => {
    const run = (seed: number) => {
      let known: string | undefined;
      return runDiskHistory(seed, (value, random) => {
        if (randomUnit(random) < 0.2) return known;
        known = value;
        return value;
      });
    };
    expect(await firstFind(run)).toContain('is not linearizable');
  });
});
