/** Thousands of histories, of which the quick test runs the first. */

import { describe, expect, it } from 'vitest';
import { timesOfRound } from '../support/rounds.js';
import { runHistory } from './histories.js';

const FAULTS = [
  undefined,
  'random=0.02',
  'reorder=0.05;duplicate=0.05',
  'random=0.02;reorder=0.05;duplicate=0.05;corrupt=0.01',
  'burst=0.01,0.2',
];
const SEEDS = timesOfRound(600);
const CHUNK = 100;

describe.each(FAULTS)('histories under %j', (faults) => {
  it.each(Array.from({ length: SEEDS / CHUNK }, (_, k) => k * CHUNK + 1))(
    'are linearizable from seed %i on',
    async (first) => {
      for (let seed = first; seed < first + CHUNK; seed++)
        expect(await runHistory(seed, faults), `seed ${seed}`).toMatchObject({ linearizable: true });
    },
  );
});
