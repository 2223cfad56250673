/**
 * Who is here at a listener, bounded in total and per address: nobody can take every place from one address. An IPv6 network of 64 bits
 * counts as one address, because one host may have all of it.
 */

import type { IpAddress } from '../packet/address.js';

/** How many may be here. */
export interface PlaceLimits {
  /** From all addresses together. */
  readonly total: number;
  /** From one address. */
  readonly perAddress: number;
}

/** Which limit leaves no place. */
export type FullLimit = keyof PlaceLimits;

/** Members of any kind, oldest first. */
export class Places<T> {
  /** What it was made with. */
  readonly limits: PlaceLimits;
  readonly #members = new Map<T, string>();
  readonly #counts = new Map<string, number>();

  constructor(limits: PlaceLimits) {
    this.limits = limits;
  }

  /** All of them, oldest first. */
  get members(): Iterable<T> {
    return this.#members.keys();
  }

  /** Takes a place. The caller has looked at {@link fullFor}. */
  enter(member: T, address: IpAddress): void {
    const key = networkOf(address);
    this.#members.set(member, key);
    this.#counts.set(key, this.#countOf(key) + 1);
  }

  /** Gives the place back; false when it had none. */
  leave(member: T): boolean {
    const key = this.#members.get(member);
    if (key === undefined) return false;
    this.#members.delete(member);
    const left = this.#countOf(key) - 1;
    if (left === 0) this.#counts.delete(key);
    else this.#counts.set(key, left);
    return true;
  }

  /** The limit that leaves no place for one more from there; undefined: there is a place. */
  fullFor(address: IpAddress): FullLimit | undefined {
    if (this.#countOf(networkOf(address)) >= this.limits.perAddress) return 'perAddress';
    return this.#members.size >= this.limits.total ? 'total' : undefined;
  }

  /**
   * Whose place one more from there may have: where the address has its share, the oldest of that address; else the oldest of the address
   * that has the most. Without an address: the latter. Only those who `mayGo` are asked; undefined: none of them.
   */
  inTheWayOf(address: IpAddress | undefined, mayGo: (member: T) => boolean): T | undefined {
    const own = address !== undefined && this.fullFor(address) === 'perAddress' ? networkOf(address) : undefined;
    let found: T | undefined;
    let most = 0;
    for (const [member, key] of this.#members) {
      const count = this.#countOf(key);
      if ((own !== undefined && key !== own) || count <= most || !mayGo(member)) continue;
      found = member;
      most = count;
    }
    return found;
  }

  #countOf(key: string): number {
    return this.#counts.get(key) ?? 0;
  }
}

const IPV6_NETWORK_HEX_DIGITS = 16;

/** What counts as one address: of IPv6 the network of 64 bits. */
export function networkOf(address: IpAddress): string {
  return address.family === 4 ? address.text : address.gidHex.slice(0, IPV6_NETWORK_HEX_DIGITS);
}
