/**
 * Validated addresses (RFC 9000 §8): peers that have answered before. A peer is an address and a CA GUID: an answer
 * proves that it receives at the address, and the GUID, 64 bits that are visible only on the path, distinguishes it
 * from an attacker who spoofs the same address. (Our GUIDs are random for each manager. GUIDs of hardware and of Linux
 * follow from the MAC address and can be guessed: they count as well, and prove less.)
 */

import type { IpAddress } from '../packet/address.js';

export class ValidatedAddresses {
  readonly #peers = new Set<string>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether the peer has answered, and has not failed to answer since. */
  has(remote: IpAddress, caGuid: bigint): boolean {
    return this.#peers.has(nameOf(remote, caGuid));
  }

  add(remote: IpAddress, caGuid: bigint): void {
    const name = nameOf(remote, caGuid);
    this.#peers.delete(name);
    this.#peers.add(name);
    if (this.#peers.size > this.#max) this.#peers.delete(this.#peers.values().next().value!);
  }

  /** It has failed to answer. */
  delete(remote: IpAddress, caGuid: bigint): void {
    this.#peers.delete(nameOf(remote, caGuid));
  }
}

function nameOf(remote: IpAddress, caGuid: bigint): string {
  return `${remote} ${caGuid}`;
}
