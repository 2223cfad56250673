import { expect, test } from 'vitest';
import { casesOfRound } from '../../support/rounds.js';
import { failAllocation, killAtRandom } from './faults.js';

test('a peer killed at 200 random moments: no wrong data, and all buffers come back', async () => {
  for (let seed = 1; seed <= 200; seed++) await killAtRandom(seed);
});

const ALLOCATIONS = casesOfRound(Array.from({ length: 500 }, (_, i) => 1 + i));

test(`of the first 500 allocations each of ${ALLOCATIONS.length} fails once`, async () => {
  for (const n of ALLOCATIONS) expect(await failAllocation(n)).toBe(true);
});
