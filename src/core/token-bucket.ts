/** A token bucket: a burst, then a rate. */

import { NS_PER_S } from './units.js';

export interface Pace {
  readonly burst: number;
  readonly perSecond: number;
}

/** Times are in nanoseconds of one clock of the caller. */
export class TokenBucket {
  readonly #intervalNs: number;
  /** How long before it is full again one may be taken. */
  readonly #headStartNs: number;
  #fullNs = Number.NEGATIVE_INFINITY;

  constructor({ burst, perSecond }: Pace) {
    this.#intervalNs = NS_PER_S / perSecond;
    this.#headStartNs = (burst - 1) * this.#intervalNs;
  }

  opensNs(now: number): number {
    return Math.max(now, this.#fullNs - this.#headStartNs);
  }

  /** The caller has checked {@link opensNs}, or the bucket goes into debt. */
  spend(now: number): void {
    this.#fullNs = Math.max(this.#fullNs, now) + this.#intervalNs;
  }

  take(now: number): boolean {
    if (this.opensNs(now) > now) return false;
    this.spend(now);
    return true;
  }
}
