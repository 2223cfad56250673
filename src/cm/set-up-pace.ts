/**
 * How fast set-ups are begun for peers that have proved nothing. Each costs queues, a queue pair and memory, a hundred times what its REQ costs the
 * sender, so that a flood of REQs from one address would take the whole processor. One address gets a burst and then so many a second; an
 * honest peer proves itself by its first RTU, and is not held up from then on. IPv6 networks of 64 bits count as one address.
 */

import { NS_PER_S } from '../core/units.js';
import type { IpAddress } from '../packet/address.js';
import { networkOf } from './places.js';

/** Set-ups of one address at once. */
const BURST = 16;
/** ... and a second, beyond the burst. */
const PER_S = 16;
const INTERVAL_NS = NS_PER_S / PER_S;
/** Addresses remembered; the one longest without a set-up is forgotten, and has a whole burst again. */
const ADDRESSES_MAX = 4096;

/** A token bucket for each address. */
export class SetUpPace {
  /** When the address will have its whole burst again; those that have it are missing. */
  readonly #fullNs = new Map<string, number>();

  /** When a set-up for the address may begin, not before `now` (ns). */
  opensNs(address: IpAddress, now: number): number {
    const fullNs = this.#fullNs.get(networkOf(address)) ?? now;
    return Math.max(now, fullNs - (BURST - 1) * INTERVAL_NS);
  }

  /** A set-up for the address begins. */
  spend(address: IpAddress, now: number): void {
    const key = networkOf(address);
    const fullNs = Math.max(this.#fullNs.get(key) ?? now, now) + INTERVAL_NS;
    this.#fullNs.delete(key);
    this.#fullNs.set(key, fullNs);
    if (this.#fullNs.size > ADDRESSES_MAX) this.#fullNs.delete(this.#fullNs.keys().next().value!);
  }
}
