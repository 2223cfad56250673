/**
 * Measures how late a program's event loop is: a timer that ought to fire every 5 ms. A stall is measured from the tick
 * it delays: up to 5 ms too short.
 */

import { NS_PER_MS } from '../../core/units.js';

const INTERVAL_MS = 5;

/**
 * Reads the clock by `nowNs`, and calls `record` with the lateness of every tick in nanoseconds, and how long ago the
 * tick was: after the poll phase of its iteration, when the sockets have been read.
 */
export function measureLoopDelay(nowNs: () => number, record: (ns: number, agoNs: number) => void): () => void {
  let dueNs = nowNs() + INTERVAL_MS * NS_PER_MS;
  const timer = setInterval(() => {
    const tickNs = nowNs();
    const lateNs = Math.max(0, tickNs - dueNs);
    dueNs = tickNs + INTERVAL_MS * NS_PER_MS;
    setImmediate(() => record(lateNs, nowNs() - tickNs)).unref();
  }, INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
