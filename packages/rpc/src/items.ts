/** Credits bound their number. */

import { broken } from './frame.js';

export class ItemQueue implements AsyncIterableIterator<unknown> {
  readonly #window: number;
  readonly #onConsumed: (count: number) => Promise<void>;
  readonly #onLeft: () => void;
  readonly #items: Array<{ readonly value: Promise<unknown>; readonly release: () => void }> = [];
  #charged = 0;
  #consumed = 0;
  #isTelling = false;
  #isEnded = false;
  /** The program has stopped iterating; items that the peer sent before it learned of that are dropped. */
  #isLeft = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  constructor(window: number, onConsumed: (count: number) => Promise<void>, onLeft: () => void) {
    this.#window = window;
    this.#onConsumed = onConsumed;
    this.#onLeft = onLeft;
  }

  /** `release`: called once the program has the item, or when it is dropped. */
  push(value: Promise<unknown>, release: () => void = () => {}): void {
    value.catch(() => {});
    if (++this.#charged > this.#window) {
      release();
      throw broken('it sent more items than its credits allow');
    }
    if (this.#isEnded) {
      release();
      throw broken('it sent an item after the end of its stream');
    }
    if (this.#failure === undefined && !this.#isLeft) this.#items.push({ value, release });
    else release();
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  fail(error: Error): void {
    if (this.#isEnded) return;
    this.#failure ??= error;
    this.#wake();
  }

  async next(): Promise<IteratorResult<unknown, undefined>> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        const value = await item.value.finally(item.release);
        this.#consumed++;
        void this.#tell();
        return { done: false, value };
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isEnded || this.#isLeft) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async return(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#isEnded && !this.#isLeft) this.#onLeft();
    this.dispose();
    return { done: true, value: undefined };
  }

  /** Nobody reads any further items. */
  dispose(): void {
    this.#isLeft = true;
    for (const { release } of this.#items.splice(0)) release();
    this.#wake();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Half a window at a time, with at most one frame in flight. */
  async #tell(): Promise<void> {
    const due = this.#consumed;
    if (this.#isTelling || this.#isEnded || this.#isLeft || due < Math.max(1, this.#window >> 1)) return;
    this.#isTelling = true;
    this.#consumed = 0;
    this.#charged -= due;
    try {
      await this.#onConsumed(due);
      this.#isTelling = false;
      await this.#tell();
    } catch (error) {
      this.fail(error as Error);
    }
  }
}

export class ItemCredits {
  readonly #window: number;
  #left: number;
  #isStopped = false;
  #wake: () => void = () => {};

  constructor(window: number) {
    this.#window = window;
    this.#left = window;
  }

  async take(): Promise<boolean> {
    while (this.#left === 0 && !this.#isStopped) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#isStopped) return false;
    this.#left--;
    return true;
  }

  give(count: number): void {
    this.#left += count;
    if (this.#left > this.#window) throw broken('it returned credits that were never used');
    this.#wake();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }
}
