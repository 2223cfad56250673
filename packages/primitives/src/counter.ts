import { checkKind, WaitDeadline, type WaitOptions, waitForEvent } from 'rocev2/internal/core';
import type { RemoteWords } from './words.js';

/**
 * A number of 64 bits with sign in the memory of an owner; it begins at 0 and wraps around. Every call is one round
 * trip. A call that rejects because the connection has ended may have been executed. When the owner dies the number is
 * lost: that of a new owner begins at 0.
 */
export class RemoteCounter {
  readonly #words: RemoteWords;
  readonly #offset: number;

  /** @internal */
  constructor(words: RemoteWords, offset: number) {
    this.#words = words;
    this.#offset = offset;
  }

  /**
   * Adds, by default 1. Resolves to the number after that. If the wait ends early, the number may be added all the
   * same.
   */
  async add(number: bigint | number = 1n, options?: WaitOptions): Promise<bigint> {
    const deadline = WaitDeadline.of('add', options, this.#words.clock);
    const isNumber = typeof number === 'bigint' || Number.isInteger(number);
    checkKind('number', number, isNumber, 'a whole number or a bigint');
    const added = BigInt(number);
    const before = await waitForEvent(deadline, this.#words.fetchAdd(this.#offset, added));
    return BigInt.asIntN(64, before + added);
  }

  /** The number. */
  async get(options?: WaitOptions): Promise<bigint> {
    const deadline = WaitDeadline.of('get', options, this.#words.clock);
    const [word] = await waitForEvent(deadline, this.#words.read(this.#offset, 1));
    return BigInt.asIntN(64, word);
  }

  /**
   * Stores `desired` if the number is `expected`. Resolves to the number before: the store was done if it equals
   * `expected`.
   */
  async compareAndSet(expected: bigint, desired: bigint, options?: WaitOptions): Promise<bigint> {
    const deadline = WaitDeadline.of('compareAndSet', options, this.#words.clock);
    checkKind('expected', expected, typeof expected === 'bigint', 'a bigint, such as 1n');
    checkKind('desired', desired, typeof desired === 'bigint', 'a bigint, such as 1n');
    const [from, to] = [BigInt.asUintN(64, expected), BigInt.asUintN(64, desired)];
    return BigInt.asIntN(64, await waitForEvent(deadline, this.#words.compareSwap(this.#offset, from, to)));
  }
}
