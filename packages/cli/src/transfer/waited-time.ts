/** Measures waiting time, excluding periods in which this process was stopped. */

import { NS_PER_MS } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';

/**
 * A process that was stalled (stopped, swapped out, on a busy machine) has not read what arrived in that time: its
 * answer may be in the socket.
 */
const STEP_MS_MAX = 20;

export class WaitedTime {
  readonly #nowNs: () => number;
  #lookedNs: number;
  #leftMs: number;

  constructor(limitMs: number, now: () => number = nowNs) {
    this.#nowNs = now;
    this.#leftMs = limitMs;
    this.#lookedNs = now();
  }

  get leftMs(): number {
    return this.#leftMs;
  }

  get sleepMs(): number {
    return Math.min(STEP_MS_MAX, this.#leftMs);
  }

  isOver(): boolean {
    const now = this.#nowNs();
    this.#leftMs -= Math.min(STEP_MS_MAX, (now - this.#lookedNs) / NS_PER_MS);
    this.#lookedNs = now;
    return this.#leftMs <= 0;
  }
}
