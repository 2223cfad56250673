/** Streams of items: the sending side, and the receiving side, which holds items until the program asks for them. Credits bound their number. */

import { broken } from './frame.js';

/** Items that have arrived and wait for the program. Can be iterated once. */
export class ItemQueue implements AsyncIterableIterator<unknown> {
  readonly #window: number;
  readonly #onConsumed: (count: number) => Promise<void>;
  readonly #onLeft: () => void;
  readonly #items: Promise<unknown>[] = [];
  /** Items whose credits were not given back yet. */
  #charged = 0;
  #consumed = 0;
  #isTelling = false;
  #isEnded = false;
  /** The program wants no more; what the peer had sent before it heard of that is dropped. */
  #isLeft = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  /** `onConsumed` gives credits back; `onLeft` is called when the program stops the iteration. */
  constructor(window: number, onConsumed: (count: number) => Promise<void>, onLeft: () => void) {
    this.#window = window;
    this.#onConsumed = onConsumed;
    this.#onLeft = onLeft;
  }

  /** Adds an item. Throws ERR_ROCE_MISMATCH if the peer had no credit for it. */
  push(item: Promise<unknown>): void {
    item.catch(() => {}); // The iteration reports the error.
    if (++this.#charged > this.#window) throw broken('it sent more items than its credits allow');
    if (this.#isEnded) throw broken('it sent an item after the end of its stream');
    if (this.#failure === undefined && !this.#isLeft) this.#items.push(item);
    this.#wake();
  }

  /** No more items come. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** The stream has failed. Items that arrived before are still delivered. */
  fail(error: Error): void {
    if (this.#isEnded) return;
    this.#failure ??= error;
    this.#wake();
  }

  /** The next item. */
  async next(): Promise<IteratorResult<unknown, undefined>> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        const value = await item;
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

  /** The program stops the iteration. */
  async return(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#isEnded && !this.#isLeft) this.#onLeft();
    this.#isLeft = true;
    this.#items.length = 0;
    this.#wake();
    return { done: true, value: undefined };
  }

  /** Itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Half a window at a time, and one frame on its way at most. */
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

/** The credits of a stream for sending. */
export class ItemCredits {
  readonly #window: number;
  #left: number;
  #isStopped = false;
  #wake: () => void = () => {};

  constructor(window: number) {
    this.#window = window;
    this.#left = window;
  }

  /** Resolves when one item may be sent; false if no more items may be sent. */
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

  /** The peer has consumed items. Throws ERR_ROCE_MISMATCH if it gives back more credits than were used. */
  give(count: number): void {
    this.#left += count;
    if (this.#left > this.#window) throw broken('it gave back credits that were never used');
    this.#wake();
  }

  /** Nobody wants more. */
  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }
}
