import { type CancellationState, checkKind, WaitDeadline, type WaitOptions, waitFor } from 'rocev2/internal/core';
import { giveBack, Lease, type LeasePlace } from './lease.js';
import { LeaseWatch } from './lease-watch.js';
import { isHeld } from './lease-word.js';
import { Pauses } from './pause.js';
import { WORD_BYTES } from './words.js';

/**
 * A number of permits, in the memory of an owner. Each permit is a lease with the guarantees of `RemoteLock`: a holder
 * that dies releases its permit by the end of the lease. A token is greater than those of earlier holders of the same
 * permit; holders of two permits may have the same. Waiters have no order. When the owner dies, every call rejects and
 * every lease ends.
 */
export class RemoteSemaphore {
  /** Leases at a time. */
  readonly permits: number;
  readonly #place: LeasePlace;
  #first = 0;

  /** @internal */
  constructor(place: LeasePlace, permits: number) {
    this.#place = place;
    this.permits = permits;
  }

  /** Waits for a permit. One that comes too late for its caller is given back. */
  async acquire(options?: WaitOptions): Promise<Lease> {
    const deadline = WaitDeadline.of('acquire', options, this.#place.words.clock);
    return waitFor(deadline, (cancellation) => this.#acquire(cancellation), giveBack);
  }

  async #acquire(cancellation: CancellationState): Promise<Lease> {
    const { leaseNs, words } = this.#place;
    const watches = Array.from({ length: this.permits }, () => new LeaseWatch(leaseNs));
    const pauses = new Pauses(words.clock, cancellation);
    for (; ; await pauses.next()) {
      for (const { permit, word } of await this.#available(watches)) {
        pauses.check();
        const { lease } = await Lease.take(this.#at(permit), word);
        if (lease === undefined) continue;
        this.#first = permit;
        if (lease.isHeld) return lease;
        await lease.release();
      }
    }
  }

  async #available(watches: readonly LeaseWatch[]): Promise<{ readonly permit: number; readonly word: bigint }[]> {
    const { words, offset } = this.#place;
    const postedNs = words.clock.nowNs();
    const found = await words.read(offset, this.permits);
    const completedNs = words.clock.nowNs();
    const [free, dead] = [[], []] as { permit: number; word: bigint }[][];
    for (let k = 0; k < this.permits; k++) {
      const permit = (this.#first + k) % this.permits;
      const word = found[permit];
      if (!isHeld(word)) free.push({ permit, word });
      else if (watches[permit].isDead(word, postedNs, completedNs)) dead.push({ permit, word });
    }
    return [...free, ...dead];
  }

  #at(permit: number): LeasePlace {
    return { ...this.#place, offset: this.#place.offset + permit * WORD_BYTES };
  }

  /**
   * Does `work` with a permit, and gives it back. Resolves or rejects as `work` does; `work` has to look at
   * `lease.signal` itself.
   */
  async run<T>(work: (lease: Lease) => Promise<T>, options?: WaitOptions): Promise<T> {
    checkKind('work', work, typeof work === 'function', 'a function');
    return (await this.acquire(options)).during(work);
  }
}
