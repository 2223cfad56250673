/** A run of consecutive fuzz seeds as one test suite. */

import { describe, expect, it } from 'vitest';
import { casesOfRound } from '../support/rounds.js';
import { DATAGRAMS_PER_SEED, fuzzNic } from './fuzz-nic.js';

/** Of the seeds [first, first + count) those of the round. */
export function describeFuzz(first: number, count: number, datagrams = DATAGRAMS_PER_SEED): void {
  describe('a NIC under hostile datagrams neither throws, nor writes or answers where it must not', () => {
    it.each(casesOfRound(Array.from({ length: count }, (_, i) => first + i)))('fuzz seed %i', async (seed) => {
      const { failures } = await fuzzNic(seed, datagrams);
      expect(failures, `replay with: npm run replay -- ${seed} fuzz`).toEqual([]);
    });
  });
}
