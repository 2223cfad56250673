/** How long something has been waited for, as far as the process ran meanwhile. */

import { NS_PER_MS } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';

/**
 * At most so much counts from one look to the next. A process that stood still (stopped, swapped out, on a busy machine) has not looked at what came
 * meanwhile: its answer may be in the socket.
 */
const STEP_MS_MAX = 20;

/** Counts the time of one wait, from its construction on. */
export class WaitedTime {
  readonly #nowNs: () => number;
  #lookedNs: number;
  #leftMs: number;

  /** `limitMs` may be Infinity; `now` is a clock in nanoseconds. */
  constructor(limitMs: number, now: () => number = nowNs) {
    this.#nowNs = now;
    this.#leftMs = limitMs;
    this.#lookedNs = now();
  }

  /** Milliseconds that may still be waited, as of the last look. */
  get leftMs(): number {
    return this.#leftMs;
  }

  /** How long to sleep until the next look, in milliseconds. */
  get sleepMs(): number {
    return Math.min(STEP_MS_MAX, this.#leftMs);
  }

  /** Counts the time since the last look; true when the limit is reached. */
  isOver(): boolean {
    const now = this.#nowNs();
    this.#leftMs -= Math.min(STEP_MS_MAX, (now - this.#lookedNs) / NS_PER_MS);
    this.#lookedNs = now;
    return this.#leftMs <= 0;
  }
}
