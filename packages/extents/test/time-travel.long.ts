/** All histories of at most five steps, with every earlier state of every folder; pairs and starting orders by seed. */

import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { ROUND, ROUNDS } from '../../../test/support/rounds.js';
import { histories, replacementsOf, runHistory, travel } from './time-travel.js';

const CHUNK = 20;
const PAIRS_A_HISTORY = 2;
const all = histories(5).filter((_, k) => ROUND === undefined || k % ROUNDS === ROUND);
const chunks = Array.from({ length: Math.ceil(all.length / CHUNK) }, (_, k) => all.slice(k * CHUNK, (k + 1) * CHUNK));

describe('folders that come back as they once were', () => {
  it.each(chunks.map((some, k) => ({ k, some })))('one of them, histories $k', async ({ some }) => {
    for (const steps of some) {
      const history = await runHistory(steps);
      for (const one of replacementsOf(history))
        expect(await travel(history, [one]), `${steps} ${JSON.stringify(one)}`).toEqual([]);
    }
  });

  it.each(chunks.map((some, k) => ({ k, some })))(
    'two of them in any starting order, histories $k',
    async ({ k, some }) => {
      const random = new SeededRandom(1 + k).stream('pairs');
      for (const steps of some) {
        const history = await runHistory(steps);
        const states = replacementsOf(history);
        for (let pair = 0; pair < PAIRS_A_HISTORY; pair++) {
          const first = states[randomInt(random, 0, states.length - 1)];
          const others = states.filter(({ folder }) => folder !== first?.folder);
          if (first === undefined || others.length === 0) continue;
          const replaced = [first, others[randomInt(random, 0, others.length - 1)]];
          const order = [0, 1, 2, 3].sort(() => randomInt(random, 0, 1) - 0.5);
          expect(await travel(history, replaced, order), `${steps} ${JSON.stringify({ replaced, order })}`).toEqual([]);
        }
      }
    },
  );
});
