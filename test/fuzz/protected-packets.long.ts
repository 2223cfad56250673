/** The long version of test/secure/mutants.test.ts. */

import { expect, it } from 'vitest';
import { sendMutants } from '../secure/mutants.js';
import { isTurn } from '../support/rounds.js';

/** A round has a fifth of these. */
const SEEDS = Array.from({ length: 20 }, (_, i) => 31 + i).filter((_, i, all) => isTurn(i, all.length));

it.each(SEEDS)('of 50,000 changed packets none is taken, seed %i', async (seed) => {
  const { sent, taken, drops, isServed } = await sendMutants(seed, 50_000);
  expect({ taken, isServed }).toEqual({ taken: 0, isServed: true });
  expect(Object.values(drops).reduce((sum, n) => sum + n)).toBe(sent);
});
