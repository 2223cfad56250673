/**
 * How fast set-ups are begun for one address. Each costs queues, a queue pair and memory, a hundred times what its REQ costs the sender, so that one
 * address could take the whole processor by a flood of them. It gets a burst, and then so many a second: few while it has proved nothing, more
 * once it has completed a set-up.
 */

import { type Pace, TokenBucket } from '../core/token-bucket.js';
import type { IpAddress } from '../packet/address.js';

/** Of peers that have proved nothing. */
export const UNPROVED_PACE: Pace = { burst: 16, perSecond: 16 };
/** Of peers that have completed a set-up: a program may open some hundred connections as fast as it can. */
export const PROVED_PACE: Pace = { burst: 256, perSecond: 128 };
/** Addresses remembered; the one longest without a set-up is forgotten, and has a whole burst again. */
const ADDRESSES_MAX = 4096;

/** A token bucket for each address. */
export class SetUpPace {
  readonly #pace: Pace;
  /** The address longest without a set-up comes first. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** When a set-up for the address may begin, not before `now` (ns). */
  opensNs(address: IpAddress, now: number): number {
    return this.#buckets.get(address.network)?.opensNs(now) ?? now;
  }

  /** A set-up for the address begins. */
  spend(address: IpAddress, now: number): void {
    const key = address.network;
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#pace);
    bucket.spend(now);
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > ADDRESSES_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
  }
}
