/** Time for connection management: the system's, or a simulation's. */

import { performance } from 'node:perf_hooks';

export interface CmClock {
  nowNs(): number;
  /** Calls `wake` not before `timeNs`; the result takes it back. */
  wakeAt(timeNs: number, wake: () => void): () => void;
}

const NS_PER_MS = 1e6;
/** setTimeout counts in 32 bits of milliseconds. */
const TIMEOUT_MS_MAX = 0x7fffffff;

/** The clock and timers of the process. */
export const SYSTEM_CLOCK: CmClock = {
  nowNs: () => performance.now() * NS_PER_MS,
  wakeAt: (timeNs, wake) => {
    const delayMs = Math.ceil(timeNs / NS_PER_MS - performance.now());
    const timer = setTimeout(wake, Math.min(TIMEOUT_MS_MAX, Math.max(0, delayMs)));
    return () => clearTimeout(timer);
  },
};
