/** Runs the fuzz seed in the environment variable SEED and says what it did: `npm run replay -- SEED fuzz`. */

import { expect, it } from 'vitest';
import { DATAGRAMS_PER_SEED, fuzzNic } from './fuzz-nic.js';

const seed = Number(process.env['SEED']);

it.runIf(Number.isInteger(seed))(`fuzz seed ${seed}`, async () => {
  const report = await fuzzNic(seed, DATAGRAMS_PER_SEED);
  console.log(report);
  expect(report.failures).toEqual([]);
});
