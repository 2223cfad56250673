/** Who holds how much, by IP address (of IPv6 by network of 64 bits), and who makes room when it is too much. */

import type { IpAddress } from '../packet/address.js';
import { networkOf } from './places.js';

/** Things of peers, grouped by the peer's address; in a group the oldest comes first. */
export class Crowd<T extends { readonly remote: IpAddress }> {
  readonly #groups = new Map<string, Set<T>>();
  #size = 0;

  /** Of all addresses. */
  get size(): number {
    return this.#size;
  }

  /** Of one address. */
  countOf(address: IpAddress): number {
    return this.#groups.get(networkOf(address))?.size ?? 0;
  }

  /** It must not be there already. */
  add(member: T): void {
    const key = networkOf(member.remote);
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, new Set([member]));
    else group.add(member);
    this.#size++;
  }

  /** Harmless when it is not there. */
  delete(member: T): void {
    const key = networkOf(member.remote);
    const group = this.#groups.get(key);
    if (group?.delete(member) !== true) return;
    if (group.size === 0) this.#groups.delete(key);
    this.#size--;
  }

  /** Of one address. */
  oldestOf(address: IpAddress): T | undefined {
    return this.#groups.get(networkOf(address))?.values().next().value;
  }

  /** The oldest of the address that has the most; among such addresses, of the one that has been there longest. */
  oldestOfFullest(): T | undefined {
    let fullest: Set<T> | undefined;
    for (const group of this.#groups.values()) if (group.size > (fullest?.size ?? 0)) fullest = group;
    return fullest?.values().next().value;
  }
}
