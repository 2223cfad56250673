import { type CancellationState, WaitDeadline, type WaitOptions, waitFor } from 'rocev2/internal/core';
import { Pauses } from './pause.js';
import type { RemoteWords } from './words.js';

/**
 * Blocks every party until `parties` have arrived, in the memory of an owner; then it serves the next round. An arrival
 * is one FETCH_ADD, and the number of arrivals never falls below the end of a complete round, so no party misses it. A
 * party that gives up withdraws its arrival, unless the round is complete by then. One that dies after its arrival
 * counts, and is missing in the next round: use `timeoutMs`. When the owner dies, every call rejects.
 */
export class RemoteBarrier {
  /** Arrivals of a round. */
  readonly parties: number;
  readonly #words: RemoteWords;
  readonly #offset: number;

  /** @internal */
  constructor(words: RemoteWords, offset: number, parties: number) {
    this.#words = words;
    this.#offset = offset;
    this.parties = parties;
  }

  /**
   * Arrives, and waits for the others. Resolves to the number of the round, from 0. If the wait ends early, the arrival
   * is taken back: until the error's `released` has resolved, the others may still count it.
   */
  async wait(options?: WaitOptions): Promise<bigint> {
    const deadline = WaitDeadline.of('wait', options, this.#words.clock);
    return waitFor(deadline, (cancellation) => this.#wait(cancellation));
  }

  async #wait(cancellation: CancellationState): Promise<bigint> {
    const pauses = new Pauses(this.#words.clock, cancellation);
    const parties = BigInt(this.parties);
    const arrival = await this.#words.fetchAdd(this.#offset, 1n);
    const round = arrival / parties;
    const end = (round + 1n) * parties;
    for (let count = arrival + 1n; count < end; [count] = await this.#words.read(this.#offset, 1)) {
      try {
        await pauses.next();
      } catch (error) {
        if (await this.#withdraw(count, end)) throw error;
        break;
      }
    }
    return round;
  }

  async #withdraw(seen: bigint, end: bigint): Promise<boolean> {
    for (let count = seen; count < end; ) {
      const found = await this.#words.compareSwap(this.#offset, count, count - 1n);
      if (found === count) return true;
      count = found;
    }
    return false;
  }
}
