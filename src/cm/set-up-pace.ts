/**
 * How fast set-ups are begun for one address. Each costs queues, a queue pair and memory, a hundred times what its REQ costs the sender, so that one
 * address could take the whole processor by a flood of them. It gets a burst, and then so many a second: few while it has proved nothing, more
 * once it has completed a set-up.
 */

import { NS_PER_S } from '../core/units.js';
import type { IpAddress } from '../packet/address.js';
import { networkOf } from './places.js';

/** Of one address. */
export interface Pace {
  /** Set-ups at once. */
  readonly burst: number;
  /** Set-ups a second, beyond the burst. */
  readonly perSecond: number;
}

/** Of peers that have proved nothing. */
export const UNPROVED_PACE: Pace = { burst: 16, perSecond: 16 };
/** Of peers that have completed a set-up: a program may open some hundred connections as fast as it can. */
export const PROVED_PACE: Pace = { burst: 256, perSecond: 128 };
/** Addresses remembered; the one longest without a set-up is forgotten, and has a whole burst again. */
const ADDRESSES_MAX = 4096;

/** A token bucket for each address. */
export class SetUpPace {
  /** When the address will have its whole burst again; those that have it are missing. */
  readonly #fullNs = new Map<string, number>();
  readonly #intervalNs: number;
  /** How long before it has its whole burst again an address may begin the next one. */
  readonly #headStartNs: number;

  constructor({ burst, perSecond }: Pace) {
    this.#intervalNs = NS_PER_S / perSecond;
    this.#headStartNs = (burst - 1) * this.#intervalNs;
  }

  /** When a set-up for the address may begin, not before `now` (ns). */
  opensNs(address: IpAddress, now: number): number {
    const fullNs = this.#fullNs.get(networkOf(address)) ?? now;
    return Math.max(now, fullNs - this.#headStartNs);
  }

  /** A set-up for the address begins. */
  spend(address: IpAddress, now: number): void {
    const key = networkOf(address);
    const fullNs = Math.max(this.#fullNs.get(key) ?? now, now) + this.#intervalNs;
    this.#fullNs.delete(key);
    this.#fullNs.set(key, fullNs);
    if (this.#fullNs.size > ADDRESSES_MAX) this.#fullNs.delete(this.#fullNs.keys().next().value!);
  }
}
