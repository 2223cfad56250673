/**
 * Limits the rate of handshakes per address. A handshake costs queues, a queue pair and memory, a hundred times as much
 * as its REQ costs the sender, so a flood from one address could use the whole processor. An address gets a burst, and
 * then a rate, which is low until it has completed a handshake.
 */

import { type Pace, TokenBucket } from '../core/token-bucket.js';
import type { IpAddress } from '../packet/address.js';

/** Of addresses that are not validated. */
export const UNVALIDATED_PACE: Pace = { burst: 16, perSecond: 16 };
/** Of addresses that have completed a handshake: a program may open some hundred connections as fast as it can. */
export const VALIDATED_PACE: Pace = { burst: 256, perSecond: 128 };
/**
 * Remembered addresses. The one without a handshake for the longest time is forgotten; it then has a full burst again.
 */
const ADDRESSES_MAX = 4096;

export class HandshakeRateLimiter {
  readonly #pace: Pace;
  /** The address without a handshake for the longest time is first. */
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
