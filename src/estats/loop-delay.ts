/** Measures how late a program's event loop is: a timer that ought to fire every 5 ms. A stall is measured from the tick it delays: up to 5 ms too short. */

import { performance } from 'node:perf_hooks';

const INTERVAL_MS = 5;
const NS_PER_MS = 1e6;

/**
 * Calls `record` with the lateness of every tick in nanoseconds, and how long ago the tick was: behind the poll phase of its turn, when the
 * sockets have been read. Returns the function that stops it. Keeps no process alive.
 */
export function measureLoopDelay(record: (ns: number, agoNs: number) => void): () => void {
  let dueMs = performance.now() + INTERVAL_MS;
  const timer = setInterval(() => {
    const tickMs = performance.now();
    const lateMs = Math.max(0, tickMs - dueMs);
    dueMs = tickMs + INTERVAL_MS;
    setImmediate(() => record(lateMs * NS_PER_MS, (performance.now() - tickMs) * NS_PER_MS)).unref();
  }, INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
