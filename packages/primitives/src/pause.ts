/** Pauses between two looks at a word: short at first, for a quick hand-over, then longer. */

import { type CancellationState, type Clock, NS_PER_MS } from 'rocev2/internal/core';

const FIRST_NS = 0.05 * NS_PER_MS;
const LONGEST_NS = 10 * NS_PER_MS;

/** Timers of the event loop are a millisecond coarse. */
export class Pauses {
  readonly #clock: Clock;
  readonly #cancellation: CancellationState;
  #nextNs = FIRST_NS;

  constructor(clock: Clock, cancellation: CancellationState) {
    this.#clock = clock;
    this.#cancellation = cancellation;
  }

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

  check(): void {
    if (this.#cancellation.error !== undefined) throw this.#cancellation.error;
  }
}
