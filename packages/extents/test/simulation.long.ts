/** 2,000 seeds of the simulated cluster and of the files of a node with a journal, a fifth as many of a cluster with three managers, and of one with journals, and a tenth as many with codes, or a fifth of them with ROUND. EXTENT_SEEDS=100000 runs so many, and EXTENT_FIRST=50000 begins with that seed. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { ROUND, ROUNDS } from '../../../test/support/rounds.js';
import { runCodingSeed } from './run-coding-seed.js';
import { runJournalSeed } from './run-journal-seed.js';
import { runJournaledDisk } from './run-journaled-disk.js';
import { runManagersSeed } from './run-managers-seed.js';
import { runSeed } from './run-seed.js';

const PER_ROUND = 400;
const SEEDS = Number(process.env['EXTENT_SEEDS'] ?? (ROUND === undefined ? ROUNDS * PER_ROUND : PER_ROUND));
const GIVEN_FIRST = process.env['EXTENT_FIRST'];
const FIRST = Number(GIVEN_FIRST ?? 1 + (ROUND ?? 0) * PER_ROUND);
const CHUNK = 50;
/** A seed with codes has two to three times as many nodes, and takes as much longer. */
const CODING_SHARE = 10;
const MANAGERS_SHARE = 5;
const JOURNAL_SHARE = 5;

/** What each test runs, from `first` on and before `end`, of a kind that has one seed for `share` of others. */
function chunks(share = 1): Array<{ readonly first: number; readonly end: number }> {
  const length = CHUNK / share;
  const last = share === 1 ? FIRST + SEEDS : Number.POSITIVE_INFINITY;
  return Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => {
    const first = (GIVEN_FIRST === undefined ? Math.ceil(FIRST / share) : FIRST) + k * length;
    return { first, end: Math.min(first + length, last) };
  });
}

describe('a simulated cluster of extent nodes', () => {
  it.each(chunks())('keeps what was promised from seed $first on', async ({ first, end }) => {
    for (let seed = first; seed < end; seed++)
      expect((await runSeed(seed)).problems, `EXTENT_SEED=${seed}`).toEqual([]);
  });

  it.each(chunks(CODING_SHARE))('keeps it with codes, from seed $first on', async ({ first, end }) => {
    for (let seed = first; seed < end; seed++)
      expect((await runCodingSeed(seed)).problems, `EXTENT_SEED=${seed} of coding-simulation.slow.test.ts`).toEqual([]);
  });

  it.each(chunks(MANAGERS_SHARE))('keeps it with three managers, from seed $first on', async ({ first, end }) => {
    for (let seed = first; seed < end; seed++)
      expect((await runManagersSeed(seed)).problems, `EXTENT_SEED=${seed} of managers-simulation.slow.test.ts`).toEqual(
        [],
      );
  });

  it.each(chunks(JOURNAL_SHARE))('keeps it with journals, from seed $first on', async ({ first, end }) => {
    for (let seed = first; seed < end; seed++)
      expect((await runJournalSeed(seed)).problems, `EXTENT_SEED=${seed} of journal-simulation.slow.test.ts`).toEqual(
        [],
      );
  });

  it.each(chunks())('keeps the files of a node with a journal, from seed $first on', async ({ first, end }) => {
    for (let seed = first; seed < end; seed++) expect(await runJournaledDisk(seed), `seed ${seed}`).toEqual([]);
  });
});
