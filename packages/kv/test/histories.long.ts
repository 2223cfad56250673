/** More histories than the quick test runs. KV_HISTORIES=1000 runs so many of each kind. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { ROUND, ROUNDS } from '../../../test/support/rounds.js';
import { runHistory } from './histories.js';

const KINDS = [
  { faults: undefined, restarts: 0 },
  { faults: 'random=0.02', restarts: 0 },
  { faults: 'reorder=0.05;duplicate=0.05', restarts: 0 },
  { faults: 'random=0.02;reorder=0.05;duplicate=0.05;corrupt=0.01', restarts: 0 },
  { faults: 'burst=0.01,0.2', restarts: 0 },
  { faults: undefined, restarts: 5 },
  { faults: 'random=0.02;reorder=0.05;duplicate=0.05;corrupt=0.01', restarts: 5 },
  { faults: 'random=0.02;reorder=0.05;duplicate=0.05;corrupt=0.01', restarts: 5, snapshots: true },
];
/** Each round has seeds of its own. */
const PER_ROUND = 40;
const SEEDS = Number(process.env['KV_HISTORIES'] ?? (ROUND === undefined ? ROUNDS * PER_ROUND : PER_ROUND));
const FIRST = 1 + (ROUND ?? 0) * PER_ROUND;
const CHUNK = 20;

describe.each(KINDS)('histories under $faults with $restarts deaths of the owner', ({ faults, ...course }) => {
  it.each(Array.from({ length: Math.ceil(SEEDS / CHUNK) }, (_, k) => FIRST + k * CHUNK))(
    'are linearizable from seed %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + CHUNK, FIRST + SEEDS); seed++)
        expect(await runHistory(seed, faults, course), `seed ${seed}`).toMatchObject({ linearizable: true });
    },
  );
});
