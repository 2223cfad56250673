/**
 * Whether the holder of a lock is dead, as others see it: its word has not changed for a whole lease.
 *
 * No two clocks need to agree on the time. A holder trusts its lease until `leaseNs` after it posted the CMP_SWAP that changed the word. Others begin to
 * count when an operation that has shown them this word is complete, which is later. So the lease has ended for the holder before others may take the lock
 * over, if no clock is faster than another one by more than `DRIFT`.
 */

import { BEATS } from './lease-word.js';

/** How much longer others wait than the lease is: clocks that run freely differ by less than a thousandth. */
const DRIFT = 0.01;

/** So long, in leases, nobody may have looked away: a holder beats less than four times a lease, so the word cannot have come round. */
const LOOK_AWAY_LEASES = BEATS / 8;

/** What somebody who waits has seen of one lock. */
export class LeaseWatch {
  readonly #leaseNs: number;
  #word: bigint | undefined;
  #sinceNs = 0;
  #postedNs = 0;

  constructor(leaseNs: number) {
    this.#leaseNs = leaseNs;
  }

  /** An operation that was posted and completed at these times has shown `word`. True: its holder is dead, and the lock may be taken over. */
  isDead(word: bigint, postedNs: number, completedNs: number): boolean {
    const hasLookedAway = completedNs - this.#postedNs > LOOK_AWAY_LEASES * this.#leaseNs;
    if (word !== this.#word || hasLookedAway) {
      this.#word = word;
      this.#sinceNs = completedNs;
    }
    this.#postedNs = postedNs;
    return postedNs - this.#sinceNs > this.#leaseNs * (1 + DRIFT);
  }
}
