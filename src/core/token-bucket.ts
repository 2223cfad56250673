/** A token bucket: a burst at once, and then so many a second. */

import { NS_PER_S } from './units.js';

/** How fast something may happen. */
export interface Pace {
  /** At once; at least 1. */
  readonly burst: number;
  /** A second, beyond the burst. */
  readonly perSecond: number;
}

/** Full when it is made. Times are in nanoseconds, of whichever clock the caller keeps to. */
export class TokenBucket {
  readonly #intervalNs: number;
  /** How long before it is full again one may be taken. */
  readonly #headStartNs: number;
  /** When it will be full again. */
  #fullNs = Number.NEGATIVE_INFINITY;

  constructor({ burst, perSecond }: Pace) {
    this.#intervalNs = NS_PER_S / perSecond;
    this.#headStartNs = (burst - 1) * this.#intervalNs;
  }

  /** When the next one may be taken, not before `now`. */
  opensNs(now: number): number {
    return Math.max(now, this.#fullNs - this.#headStartNs);
  }

  /** Takes one. The caller has looked at {@link opensNs}, or goes into debt. */
  spend(now: number): void {
    this.#fullNs = Math.max(this.#fullNs, now) + this.#intervalNs;
  }

  /** Takes one, if there is one. */
  take(now: number): boolean {
    if (this.opensNs(now) > now) return false;
    this.spend(now);
    return true;
  }
}
