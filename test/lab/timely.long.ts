/** What becomes of the shares of two flows under round-trip control ("ECN or Delay", CoNEXT'16, figures 9, 10 and 12). */

import { expect, test } from 'vitest';
import { TIMELY_SCENARIOS } from '../../src/sim/scenarios/timely.js';
import { failuresOf, runBuiltIn } from './run-built-in.js';

test.each(TIMELY_SCENARIOS.map(({ name }) => name))('%s', async (name) => {
  expect(failuresOf(await runBuiltIn(name))).toEqual([]);
});
