/**
 * How fast handshakes are begun for one address. Each costs queues, a queue pair and memory, a hundred times what its
 * REQ costs the sender, so that one address could use the whole processor by a flood of them. It gets a burst, and then
 * a rate: a low one until it has completed a handshake.
 */

import { type Pace, TokenBucket } from '../core/token-bucket.js';
import type { IpAddress } from '../packet/address.js';

/** Of addresses that are not validated. */
export const UNVALIDATED_PACE: Pace = { burst: 16, perSecond: 16 };
/** Of addresses that have completed a handshake: a program may open some hundred connections as fast as it can. */
export const VALIDATED_PACE: Pace = { burst: 256, perSecond: 128 };
/** Addresses remembered; the one longest without a handshake is forgotten, and has a whole burst again. */
const ADDRESSES_MAX = 4096;

export class HandshakeRateLimiter {
  readonly #pace: Pace;
  /** The address longest without a handshake comes first. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** When a handshake for the address may begin, not before `now` (ns). */
  opensNs({ network }: IpAddress, now: number): number {
    return this.#buckets.get(network)?.opensNs(now) ?? now;
  }

  /** A handshake for the address begins. */
  spend({ network }: IpAddress, now: number): void {
    const bucket = this.#buckets.get(network) ?? new TokenBucket(this.#pace);
    bucket.spend(now);
    this.#buckets.delete(network);
    this.#buckets.set(network, bucket);
    if (this.#buckets.size > ADDRESSES_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
  }
}
