/** What has arrived and nobody has looked at yet, in the order of arrival. */

import type { Clock } from 'rocev2/internal/core';

/** A queue with one reader, who waits no longer than a deadline. */
export class Inbox<T> {
  readonly #clock: Clock;
  readonly #items: T[] = [];
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something has arrived. */
  push(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

  /** The oldest that waits, or the next one to arrive before `deadlineNs`; undefined when none does. */
  async next(deadlineNs: number): Promise<T | undefined> {
    while (this.#items.length === 0 && this.#clock.nowNs() < deadlineNs) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.wakeAt(deadlineNs, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
      this.#wake = undefined;
    }
    return this.#items.shift();
  }
}
