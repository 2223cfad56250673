/**
 * Caches addresses of arrays, because a number is cheapest to pass to native code. Memory behind an array of more than
 * 64 bytes never moves; a detached array has length 0, so callers check bounds first.
 */

import type { LibC } from './libc.js';

/** Streams use one array many times in a row; it is kept alive until another one is used. */
export function rememberedAddresses(lib: Pick<LibC, 'addressOf'>): (bytes: Uint8Array) => number {
  const addresses = new WeakMap<Uint8Array, number>();
  let lastBytes: Uint8Array | undefined;
  let lastAddress = 0;
  return (bytes) => {
    if (bytes === lastBytes) return lastAddress;
    let address = addresses.get(bytes);
    if (address === undefined) {
      address = lib.addressOf(bytes);
      addresses.set(bytes, address);
    }
    lastBytes = bytes;
    lastAddress = address;
    return address;
  };
}
