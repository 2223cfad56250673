import {
  type CancellationState,
  checkKind,
  NS_PER_MS,
  WaitDeadline,
  type WaitOptions,
  waitFor,
} from 'rocev2/internal/core';
import { giveBack, Lease, type LeasePlace } from './lease.js';
import { LeaseWatch } from './lease-watch.js';
import { freeWord, isHeld, tokenOf } from './lease-word.js';
import { Pauses } from './pause.js';

/**
 * A lock in the memory of an owner. At most one side holds it at a time, if clock rates agree to 1 % and holders check
 * `isHeld`; tokens distinguish a holder that does not. A holder that dies loses the lock: a waiter takes it over one
 * lease after the last renewal it saw. Waiters have no order. When the owner dies, every call rejects and every lease
 * ends; the locks of a new owner begin with greater tokens.
 */
export class RemoteLock {
  readonly #place: LeasePlace;
  #free = freeWord(0n);

  /** @internal */
  constructor(place: LeasePlace) {
    this.#place = place;
  }

  /** How long a holder may be silent, milliseconds. */
  get leaseMs(): number {
    return this.#place.leaseNs / NS_PER_MS;
  }

  /** Waits for the lock. A lock that is obtained too late for its caller is released. */
  async acquire(options?: WaitOptions): Promise<Lease> {
    const deadline = WaitDeadline.of('acquire', options, this.#place.words.clock);
    return waitFor(deadline, (cancellation) => this.#acquire(cancellation), giveBack);
  }

  async #acquire(cancellation: CancellationState): Promise<Lease> {
    const { clock } = this.#place.words;
    const watch = new LeaseWatch(this.#place.leaseNs);
    const pauses = new Pauses(clock, cancellation);
    for (let expected = this.#free; ; pauses.check()) {
      const postedNs = clock.nowNs();
      const { found, lease } = await this.#take(expected);
      if (lease?.isHeld === true) return lease;
      await lease?.release();
      const mayTake = !isHeld(found) || watch.isDead(found, postedNs, clock.nowNs());
      expected = mayTake ? found : this.#free; // The next CMP_SWAP succeeds as soon as the present holder has gone.
      if (!mayTake) await pauses.next();
    }
  }

  /** The lock if it is free now; undefined while it is held, even by a dead holder. */
  async tryAcquire(options?: WaitOptions): Promise<Lease | undefined> {
    const deadline = WaitDeadline.of('tryAcquire', options, this.#place.words.clock);
    return waitFor(deadline, (cancellation) => this.#tryAcquire(cancellation), giveBack);
  }

  async #tryAcquire(cancellation: CancellationState): Promise<Lease | undefined> {
    for (let expected = this.#free; cancellation.error === undefined; ) {
      const { found, lease } = await this.#take(expected);
      if (lease !== undefined || isHeld(found)) return lease;
      expected = found;
    }
    throw cancellation.error;
  }

  async #take(expected: bigint): ReturnType<typeof Lease.take> {
    const taken = await Lease.take(this.#place, expected);
    this.#free = freeWord(taken.lease?.token ?? tokenOf(taken.found));
    return taken;
  }

  /**
   * Runs `work` under the lock, and then releases it. Resolves or rejects as `work` does; `work` has to observe
   * `lease.signal` itself.
   */
  async run<T>(work: (lease: Lease) => Promise<T>, options?: WaitOptions): Promise<T> {
    checkKind('work', work, typeof work === 'function', 'a function');
    return (await this.acquire(options)).during(work);
  }
}
