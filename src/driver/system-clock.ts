/** The only place that reads the system's clock; everything else gets a time or a `Clock` passed in. */

import { performance } from 'node:perf_hooks';
import { type Clock, wakeWhenDue } from '../core/clock.js';
import { NS_PER_MS } from '../core/units.js';

const CLOCK_READINGS = 50;
/** setTimeout counts in 32 bits of milliseconds. */
const TIMEOUT_MS_MAX = 0x7fffffff;

const START_NS = clockStartNs();

/**
 * Both clocks tick alike; the time between the two readings is the error, and the shortest of several is taken: the
 * first ones are slow.
 */
function clockStartNs(): number {
  let startNs = 0;
  let shortestNs = Number.POSITIVE_INFINITY;
  for (let n = 0; n < CLOCK_READINGS; n++) {
    const beforeNs = Number(process.hrtime.bigint());
    const betweenNs = performance.now() * NS_PER_MS;
    const tookNs = Number(process.hrtime.bigint()) - beforeNs;
    if (tookNs >= shortestNs) continue;
    shortestNs = tookNs;
    startNs = beforeNs + tookNs / 2 - betweenNs;
  }
  return startNs;
}

/** The system's monotonic clock in ns: the same in all threads, to the microsecond. */
export function nowNs(): number {
  return START_NS + performance.now() * NS_PER_MS;
}

/**
 * The argument of setTimeout so that it does not fire before `ns` have passed: whole milliseconds, 0 to 2^31 - 1.
 */
export function timeoutMs(ns: number): number {
  return Math.min(TIMEOUT_MS_MAX, Math.max(0, Math.ceil(ns / NS_PER_MS)));
}

/**
 * Timers of the event loop count whole milliseconds of a clock that is read once per iteration: they fire up to a
 * millisecond early, and after 2^31 ms at the latest.
 */
const COARSE_CLOCK: Clock = {
  nowNs,
  wakeAt: (timeNs, wake) => {
    const timer = setTimeout(wake, timeoutMs(timeNs - nowNs()));
    return () => clearTimeout(timer);
  },
};

/** The monotonic clock. It never wakes early, and usually up to a millisecond late. */
export const SYSTEM_CLOCK: Clock = {
  nowNs,
  wakeAt: (timeNs, wake) => wakeWhenDue(COARSE_CLOCK, timeNs, wake),
};

export function wallMs(): number {
  return Date.now();
}

export function wallClockNs(): () => bigint {
  const offset = BigInt(Date.now()) * BigInt(NS_PER_MS) - process.hrtime.bigint();
  return () => offset + process.hrtime.bigint();
}
