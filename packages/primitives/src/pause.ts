/** Pauses between two looks at a word: short at first, so that a lock is handed over at once, and long in the end, so that those who wait cost little. */

import { type CancellationState, type Clock, NS_PER_MS } from 'rocev2/internal/core';

const FIRST_NS = 0.05 * NS_PER_MS;
const LONGEST_NS = 10 * NS_PER_MS;

/** The pauses of one call. Timers of the event loop are a millisecond coarse. */
export class Pauses {
  readonly #clock: Clock;
  readonly #cancellation: CancellationState;
  #nextNs = FIRST_NS;

  constructor(clock: Clock, cancellation: CancellationState) {
    this.#clock = clock;
    this.#cancellation = cancellation;
  }

  /** One pause, twice as long as the one before. Throws when the caller has given up. */
  async next(): Promise<void> {
    this.check();
    const ns = this.#nextNs;
    this.#nextNs = Math.min(2 * ns, LONGEST_NS);
    await new Promise<void>((resolve) => {
      const stop = this.#clock.wakeAt(this.#clock.nowNs() + ns, resolve);
      this.#cancellation.onEnd = () => {
        stop();
        resolve();
      };
    });
    this.#cancellation.onEnd = undefined;
    this.check();
  }

  /** Throws when the caller has given up. */
  check(): void {
    if (this.#cancellation.error !== undefined) throw this.#cancellation.error;
  }
}
