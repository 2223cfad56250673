/** 2,000 seeds of the simulated cluster, or a fifth of them with ROUND. EXTENT_SEEDS=100000 runs so many. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { ROUND, ROUNDS } from '../support/rounds.js';
import { runSeed } from './run-seed.js';

const PER_ROUND = 400;
const SEEDS = Number(process.env['EXTENT_SEEDS'] ?? (ROUND === undefined ? ROUNDS * PER_ROUND : PER_ROUND));
const FIRST = 1 + (ROUND ?? 0) * PER_ROUND;
const CHUNK = 50;

describe('a simulated cluster of extent nodes', () => {
  it.each(Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => FIRST + k * CHUNK))(
    'keeps what was promised from seed %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + CHUNK, FIRST + SEEDS); seed++)
        expect((await runSeed(seed)).problems, `EXTENT_SEED=${seed}`).toEqual([]);
    },
  );
});
