/** 2,000 seeds of the simulated cluster and of the files of a node with a journal, a fifth as many of a cluster with three managers, and of one with journals, and a tenth as many with codes, or a fifth of them with ROUND. EXTENT_SEEDS=100000 runs so many. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { ROUND, ROUNDS } from '../support/rounds.js';
import { runCodingSeed } from './run-coding-seed.js';
import { runJournalSeed } from './run-journal-seed.js';
import { runJournaledDisk } from './run-journaled-disk.js';
import { runManagersSeed } from './run-managers-seed.js';
import { runSeed } from './run-seed.js';

const PER_ROUND = 400;
const SEEDS = Number(process.env['EXTENT_SEEDS'] ?? (ROUND === undefined ? ROUNDS * PER_ROUND : PER_ROUND));
const FIRST = 1 + (ROUND ?? 0) * PER_ROUND;
const CHUNK = 50;
/** A seed with codes has two to three times as many nodes, and takes as much longer. */
const CODING_SHARE = 10;
const CODING_CHUNK = CHUNK / CODING_SHARE;
const MANAGERS_SHARE = 5;
const MANAGERS_CHUNK = CHUNK / MANAGERS_SHARE;
const JOURNAL_SHARE = 5;
const JOURNAL_CHUNK = CHUNK / JOURNAL_SHARE;

describe('a simulated cluster of extent nodes', () => {
  it.each(Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => FIRST + k * CHUNK))(
    'keeps what was promised from seed %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + CHUNK, FIRST + SEEDS); seed++)
        expect((await runSeed(seed)).problems, `EXTENT_SEED=${seed}`).toEqual([]);
    },
  );

  it.each(
    Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => Math.ceil(FIRST / CODING_SHARE) + k * CODING_CHUNK),
  )('keeps it with codes, from seed %i on', async (first) => {
    for (let seed = first; seed < first + CODING_CHUNK; seed++)
      expect((await runCodingSeed(seed)).problems, `EXTENT_SEED=${seed} of coding-simulation.test.ts`).toEqual([]);
  });

  it.each(
    Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => Math.ceil(FIRST / MANAGERS_SHARE) + k * MANAGERS_CHUNK),
  )('keeps it with three managers, from seed %i on', async (first) => {
    for (let seed = first; seed < first + MANAGERS_CHUNK; seed++)
      expect((await runManagersSeed(seed)).problems, `EXTENT_SEED=${seed} of managers-simulation.test.ts`).toEqual([]);
  });

  it.each(
    Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => Math.ceil(FIRST / JOURNAL_SHARE) + k * JOURNAL_CHUNK),
  )('keeps it with journals, from seed %i on', async (first) => {
    for (let seed = first; seed < first + JOURNAL_CHUNK; seed++)
      expect((await runJournalSeed(seed)).problems, `EXTENT_SEED=${seed} of journal-simulation.test.ts`).toEqual([]);
  });

  it.each(Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => FIRST + k * CHUNK))(
    'keeps the files of a node with a journal, from seed %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + CHUNK, FIRST + SEEDS); seed++)
        expect(await runJournaledDisk(seed), `seed ${seed}`).toEqual([]);
    },
  );
});
