import { expect, test } from 'vitest';
import { failAllocation, killAtRandom } from './faults.js';

test('a peer killed at 200 random moments: no wrong data, and all buffers come back', async () => {
  for (let seed = 1; seed <= 200; seed++) await killAtRandom(seed);
});

test('every one of the first 500 allocations fails once', async () => {
  for (let n = 1; n <= 500; n++) expect(await failAllocation(n)).toBe(true);
});
