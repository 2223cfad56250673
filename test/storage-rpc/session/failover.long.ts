import { test } from 'vitest';
import { checkFailovers } from './check-failovers.js';

test('1,000 failovers in each direction: every sum is exact', async () => {
  console.log(await checkFailovers(1000));
});
