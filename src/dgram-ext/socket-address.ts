/**
 * `struct sockaddr_in` and `sockaddr_in6` as the kernel lays them out: the family in host order, the rest in network
 * order.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import { IpAddress } from '../packet/address.js';

export const AF_INET = 2;
export const AF_INET6 = 10;
export const SOCKET_ADDRESS_BYTES = 28;

export function socketAddressLength(family: 4 | 6): number {
  return family === 4 ? 16 : SOCKET_ADDRESS_BYTES;
}

function addressOffset(family: 4 | 6): number {
  return family === 4 ? 4 : 8;
}

/** Writes to `b[o, o + socketAddressLength)`, which must be zero before the first time. */
export function writeSocketAddress(b: Uint8Array, o: number, address: IpAddress, udpPort: number): void {
  b[o] = address.family === 4 ? AF_INET : AF_INET6;
  writeU16(b, o + 2, udpPort);
  b.set(address.bytes, o + addressOffset(address.family));
}

export function socketAddressPort(b: Uint8Array, o: number): number {
  return readU16(b, o + 2);
}

/** Bounds the memory that a sender with many source addresses can occupy; a full table is emptied. */
const ADDRESSES_MAX = 1024;

export class SocketAddressCache {
  readonly #known = new Map<string, IpAddress>();
  readonly #offset: number;
  #last: IpAddress;

  constructor(own: IpAddress) {
    this.#last = own;
    this.#offset = addressOffset(own.family);
  }

  get(b: Uint8Array, o: number): IpAddress {
    const { bytes } = this.#last;
    const start = o + this.#offset;
    let i = 0;
    while (i < bytes.length && b[start + i] === bytes[i]) i++;
    if (i !== bytes.length) this.#last = this.#find(b.subarray(start, start + bytes.length));
    return this.#last;
  }

  #find(bytes: Uint8Array): IpAddress {
    const key = bytes.join();
    let address = this.#known.get(key);
    if (address === undefined) {
      if (this.#known.size === ADDRESSES_MAX) this.#known.clear();
      address = IpAddress.fromBytes(bytes);
      this.#known.set(key, address);
    }
    return address;
  }
}
