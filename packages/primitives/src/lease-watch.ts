/**
 * A lock's holder is considered dead when its word has not changed for a whole lease. The holder counts `leaseNs` from
 * when it posted the CMP_SWAP, others from when they saw the word, which is later; so no synchronised clocks are needed
 * if rates differ by less than `DRIFT`.
 */

import { BEATS } from './lease-word.js';

/** How much longer others wait than the lease is: clocks that run freely differ by less than a thousandth. */
const DRIFT = 0.01;

/**
 * Maximum gap between two looks, in leases: a holder beats less than four times per lease, so the word cannot have
 * wrapped around.
 */
const LOOK_AWAY_LEASES = BEATS / 8;

export class LeaseWatch {
  readonly #leaseNs: number;
  #word: bigint | undefined;
  #sinceNs = 0;
  #postedNs = 0;

  constructor(leaseNs: number) {
    this.#leaseNs = leaseNs;
  }

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
