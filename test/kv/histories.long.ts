/** More histories than the quick test runs. KV_HISTORIES=1000 runs so many under each kind of fault. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { ROUND, ROUNDS } from '../support/rounds.js';
import { runHistory } from './histories.js';

const FAULTS = [
  undefined,
  'random=0.02',
  'reorder=0.05;duplicate=0.05',
  'random=0.02;reorder=0.05;duplicate=0.05;corrupt=0.01',
  'burst=0.001,0.2',
];
/** Each round has seeds of its own. */
const PER_ROUND = 60;
const SEEDS = Number(process.env['KV_HISTORIES'] ?? (ROUND === undefined ? ROUNDS * PER_ROUND : PER_ROUND));
const FIRST = 1 + (ROUND ?? 0) * PER_ROUND;
const CHUNK = 20;

describe.each(FAULTS)('histories under %j', (faults) => {
  it.each(Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => FIRST + k * CHUNK))(
    'are linearizable from seed %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + CHUNK, FIRST + SEEDS); seed++)
        expect(await runHistory(seed, faults), `seed ${seed}`).toMatchObject({ linearizable: true });
    },
  );
});
