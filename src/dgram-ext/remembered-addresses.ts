/**
 * Where arrays stand in memory, asked once an array: a number costs least to pass to native code. Safe because memory behind an array of more than 64 bytes
 * never moves; of a detached array, whose length is 0, the address is worth nothing, so callers check bounds first.
 */

import type { LibC } from './libc.js';

/** A function that gives the address of an array's first byte. Streams take one array many times in a row; it keeps that one alive until another is asked for. */
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
