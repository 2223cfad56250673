import { type Clock, checkKind, RoceError, WaitDeadline, type WaitOptions, waitForEvent } from 'rocev2/internal/core';
import { freeWord, heldWord, nextBeat, tokenOf } from './lease-word.js';
import type { RemoteWords } from './words.js';

const RENEWALS = 3;

export interface LeasePlace {
  readonly words: RemoteWords;
  readonly offset: number;
  readonly leaseNs: number;
  readonly title: string;
}

/**
 * A lock, or a permit of a semaphore, that this side holds until `release`. It is renewed while this side's event loop
 * runs. If that stalls for longer than the lease, or the owner cannot be reached, others may take the lock over. Then
 * `isHeld` is false from the end of the lease on, and `signal` is aborted. When the owner dies, the lease ends.
 */
export class Lease {
  /**
   * Greater than those of all earlier holders. Pass it to the resource that the lock protects, which refuses smaller
   * tokens than it has seen (fencing).
   */
  readonly token: bigint;
  readonly #place: LeasePlace;
  readonly #clock: Clock;
  readonly #lost = new AbortController();
  readonly #forgetEnd: () => void;
  #word: bigint;
  #untilNs = 0;
  #stopTimers: () => void = () => {};
  #renewal: Promise<void> | undefined;
  #back: Promise<boolean> | undefined;

  private constructor(place: LeasePlace, word: bigint, postedNs: number) {
    this.token = tokenOf(word);
    this.#place = place;
    this.#clock = place.words.clock;
    this.#word = word;
    this.#forgetEnd = place.words.whenEnded(() => this.#lose('the way to its owner has ended'));
    this.#trust(postedNs);
  }

  /**
   * Makes this side the next holder where the word is `expected`: free, or that of a dead holder. `found` is what the
   * word was. One round trip. @internal
   */
  static async take(place: LeasePlace, expected: bigint): Promise<{ readonly found: bigint; readonly lease?: Lease }> {
    const { words, offset } = place;
    const postedNs = words.clock.nowNs();
    const mine = heldWord(tokenOf(expected) + 1n);
    const found = await words.compareSwap(offset, expected, mine);
    return found === expected ? { found, lease: new Lease(place, mine, postedNs) } : { found };
  }

  /** Whether the lock is certainly held, by this side's clock. False after `release`. */
  get isHeld(): boolean {
    return this.#back === undefined && this.#clock.nowNs() < this.#untilNs;
  }

  /**
   * Aborted when the lock is lost, not by `release`. The reason is ERR_ROCE_FENCED. Pass it to the work under the lock.
   */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  #trust(postedNs: number): void {
    const { leaseNs } = this.#place;
    this.#untilNs = postedNs + leaseNs;
    const stopRenewal = this.#clock.wakeAt(postedNs + leaseNs / RENEWALS, () => {
      this.#renewal = this.#renew();
    });
    const stopEnd = this.#clock.wakeAt(this.#untilNs, () => this.#lose('it could not be renewed in time'));
    this.#stopTimers = () => {
      stopRenewal();
      stopEnd();
    };
  }

  async #renew(): Promise<void> {
    const postedNs = this.#clock.nowNs();
    if (postedNs >= this.#untilNs) {
      this.#lose('this program was stalled');
      return;
    }
    const { words, offset } = this.#place;
    const next = nextBeat(this.#word);
    try {
      const found = await words.compareSwap(offset, this.#word, next);
      if (found !== this.#word) {
        this.#lose('another holder has taken it over');
        return;
      }
      this.#word = next;
    } catch (error) {
      this.#lose('the way to its owner has ended', error);
      return;
    }
    if (this.#back !== undefined) return;
    this.#stopTimers();
    this.#trust(postedNs);
  }

  #lose(why: string, cause?: unknown): void {
    if (this.#back !== undefined) return;
    this.#back = this.#giveBack(); // Unless it was taken over: others then need not wait for the end of the lease.
    const text = `the lease on ${this.#place.title} has ended: ${why}`;
    const hint = 'acquire it again; a longer `leaseMs` survives longer pauses';
    this.#lost.abort(new RoceError('ERR_ROCE_FENCED', text, hint, cause === undefined ? undefined : { cause }));
  }

  /** Resolves to whether the lock was held without interruption. */
  async #giveBack(): Promise<boolean> {
    this.#stopTimers();
    this.#forgetEnd();
    await this.#renewal;
    const { words, offset } = this.#place;
    try {
      const found = await words.compareSwap(offset, this.#word, freeWord(this.token));
      return found === this.#word;
    } catch {
      return false;
    }
  }

  /**
   * Releases the lock. Resolves to whether this side was its only holder until then; false also when the owner could
   * not be reached. Safe to call twice.
   */
  async release(options?: WaitOptions): Promise<boolean> {
    const deadline = WaitDeadline.of('release', options, this.#clock);
    this.#back ??= this.#giveBack();
    return waitForEvent(deadline, this.#back);
  }

  /** Does `work`, and gives the lock back. Resolves or rejects as `work` does. @internal */
  async during<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    checkKind('work', work, typeof work === 'function', 'a function');
    try {
      return await work(this);
    } finally {
      await this.release();
    }
  }

  /** The same as {@link release}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

export async function giveBack(lease: Lease | undefined): Promise<void> {
  await lease?.release();
}
