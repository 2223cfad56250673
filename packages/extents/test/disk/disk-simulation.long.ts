/** 300 seeds of a disk over a simulated cluster, or a fifth of them with ROUND. DISK_SEEDS=2000 runs so many. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { ROUND, ROUNDS } from '../../../../test/support/rounds.js';
import { runDiskSeed } from './run-disk-seed.js';

const PER_ROUND = 60;
const SEEDS = Number(process.env['DISK_SEEDS'] ?? (ROUND === undefined ? ROUNDS * PER_ROUND : PER_ROUND));
const FIRST = 1 + (ROUND ?? 0) * PER_ROUND;
const CHUNK = 20;

describe('a disk over a simulated cluster', () => {
  it.each(Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => FIRST + k * CHUNK))(
    'keeps what was promised from seed %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + CHUNK, FIRST + SEEDS); seed++)
        expect((await runDiskSeed(seed)).problems, `DISK_SEED=${seed}`).toEqual([]);
    },
  );
});
