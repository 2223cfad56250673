import type { Clock } from 'rocev2/internal/core';

export class TimedInbox<T> {
  readonly #clock: Clock;
  readonly #items: T[] = [];
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

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
