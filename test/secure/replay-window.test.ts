/** The replay window against a set that forgets nothing. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import {
  COUNTER_NEW,
  COUNTER_OLD,
  COUNTER_SEEN,
  REPLAY_WINDOW_PACKETS,
  ReplayWindow,
} from '../../src/port/secure/replay-window.js';
import { Dice } from '../support/dice.js';

describe('the replay window', () => {
  it('says what a set says, over jumps, repetitions and 2^32', () => {
    const dice = new Dice(new SeededRandom(3).stream('counters'));
    for (const start of [0, 2 ** 32 - 5000, 2 ** 50]) {
      const window = new ReplayWindow();
      const taken = new Set<number>();
      let highest = -1;
      let at = start;
      for (let n = 0; n < 60_000; n++) {
        if (dice.chance(0.001)) at += dice.int(1, 3 * REPLAY_WINDOW_PACKETS);
        else if (dice.chance(0.6)) at++;
        const counter = Math.max(0, dice.chance(0.5) ? at : at - dice.int(0, REPLAY_WINDOW_PACKETS + 100));
        const expected =
          counter > highest
            ? COUNTER_NEW
            : highest + 1 - counter > REPLAY_WINDOW_PACKETS
              ? COUNTER_OLD
              : taken.has(counter)
                ? COUNTER_SEEN
                : COUNTER_NEW;
        const verdict = window.check(counter);
        if (verdict !== expected) expect.fail(`${counter} of ${highest}: ${verdict}, not ${expected}`);
        if (verdict !== COUNTER_NEW || dice.chance(0.2)) continue;
        window.take(counter);
        taken.add(counter);
        highest = Math.max(highest, counter);
      }
    }
  });
});
