/**
 * Address bytes in received frames -> one IpAddress each, so that the engine compares by identity. A cache in the
 * strict sense: when two addresses share a key, the later one replaces the earlier, and both results are correct.
 */

import { readU32 } from '../core/bytes.js';
import { IpAddress } from '../packet/address.js';

const ADDRESSES_MAX = 1024;

/** At most 1,024 addresses; a full cache starts again. */
export class SourceCache {
  readonly #known = new Map<number, IpAddress>();

  /** The address in `bytes[offset, offset + length)`; `length` is 4 or 16. */
  get(bytes: Uint8Array, offset: number, length: number): IpAddress {
    let key = 0;
    for (let o = offset; o < offset + length; o += 4) key = (Math.imul(key, 31) + readU32(bytes, o)) | 0;
    const known = this.#known.get(key);
    if (known !== undefined && isAt(known.bytes, bytes, offset, length)) return known;
    if (known === undefined && this.#known.size === ADDRESSES_MAX) this.#known.clear();
    const address = IpAddress.fromBytes(bytes.subarray(offset, offset + length));
    this.#known.set(key, address);
    return address;
  }
}

export function isAt(address: Uint8Array, bytes: Uint8Array, offset: number, length: number): boolean {
  if (address.length !== length) return false;
  for (let i = 0; i < length; i++) if (address[i] !== bytes[offset + i]) return false;
  return true;
}
