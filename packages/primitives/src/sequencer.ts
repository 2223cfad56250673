import { checkWhole, WaitDeadline, type WaitOptions, waitForEvent } from 'rocev2/internal/core';
import type { RemoteWords } from './words.js';

const COUNT_MAX = 2 ** 32;

/**
 * Gives out numbers, each of them once, and each greater than those given out before its call began. One round trip.
 * Numbers are missing where a caller died or gave up. When the owner dies every call rejects; a new owner continues
 * with greater numbers (`firstNumber` of `servePrimitives`).
 */
export class RemoteSequencer {
  readonly #words: RemoteWords;
  readonly #offset: number;

  /** @internal */
  constructor(words: RemoteWords, offset: number) {
    this.#words = words;
    this.#offset = offset;
  }

  /** Takes `count` numbers that follow each other, 1 to 2^32. Resolves to the first one. */
  async next(count = 1, options?: WaitOptions): Promise<bigint> {
    checkWhole('count', count, 1, COUNT_MAX);
    const deadline = WaitDeadline.of('next', options, this.#words.clock);
    return waitForEvent(deadline, this.#words.fetchAdd(this.#offset, BigInt(count)));
  }
}
