import type { Clock } from '../../src/core/clock.js';
import { type RandomSource, randomInt } from '../../src/core/random.js';

/** As timers of Node that fire early. */
const EARLY_NS = 1e6;
const LATE_NS = 2e6;
/** Timers of one iteration of an event loop fire together. */
const ITERATION_NS = 4e6;

/**
 * The same time, with timers that fire up to 1 ms early, in time, up to 2 ms late, or together with others, by seed.
 */
export function unpunctualClock(clock: Clock, random: RandomSource): Clock {
  return {
    nowNs: () => clock.nowNs(),
    wakeAt: (timeNs, wake) => clock.wakeAt(Math.max(clock.nowNs(), moved(timeNs, random)), wake),
  };
}

function moved(timeNs: number, random: RandomSource): number {
  switch (randomInt(random, 0, 3)) {
    case 0:
      return timeNs - randomInt(random, 1, EARLY_NS);
    case 1:
      return timeNs + randomInt(random, 0, LATE_NS);
    case 2:
      return Math.ceil(timeNs / ITERATION_NS) * ITERATION_NS;
    default:
      return timeNs;
  }
}
