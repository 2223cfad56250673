/** Runs the seed in the environment variable SEED and says what it did: `npm run replay -- SEED`. */

import { expect, it } from 'vitest';
import { runSeed } from './run-seed.js';

const seed = Number(process.env['SEED']);

it.runIf(Number.isInteger(seed))(`seed ${seed}`, async () => {
  const report = await runSeed(seed);
  console.log(report);
  expect(report.failures).toEqual([]);
});
