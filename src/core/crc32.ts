/**
 * CRC-32/ISO-HDLC (the polynomial of Ethernet, zlib and the ICRC) in the zlib convention: values chain, so
 * `crc32(b, crc32(a))` is the CRC of `a` followed by `b`.
 *
 * A native function is fastest from some 200 bytes on; below that the call and the view it needs cost more than the sum itself, so
 * short ranges go through tables in JavaScript.
 */

import { crc32 as zlibCrc32 } from 'node:zlib';
import { crcOfRange, crcTables } from './crc-tables.js';
import { requirePackage } from './packages.js';

type NativeCrc32 = (bytes: Uint8Array, seed?: number) => number;

/** CRC-32 of `bytes`, continuing from `seed` (an earlier result; 0 to start). Unsigned. The first call loads the fastest one there is. */
export let crc32: NativeCrc32 = (bytes, seed) => {
  crc32 = fastest().crc32;
  return crc32(bytes, seed);
};

/** Which implementation {@link crc32} calls. */
export function crc32Backend(): '@node-rs/crc32' | 'zlib' {
  return fastest().name;
}

function fastest(): { name: '@node-rs/crc32' | 'zlib'; crc32: NativeCrc32 } {
  try {
    return { name: '@node-rs/crc32', crc32: requirePackage<{ crc32: NativeCrc32 }>('@node-rs/crc32').crc32 };
  } catch {
    // Not installed, or no prebuilt binary for this platform: zlib's takes about twice as long.
    return { name: 'zlib', crc32: zlibCrc32 };
  }
}

/** At and below this many bytes {@link crc32Range} is faster than {@link crc32} on a view that has to be made first (measured). */
export const CRC32_RANGE_BYTES = 192;

/** The reflected polynomial. */
export const CRC32_POLYNOMIAL = 0xedb88320;

const TABLES = crcTables(CRC32_POLYNOMIAL);

/** CRC-32 of `bytes[offset, offset + length)`, continuing from `seed`. Needs no view; meant for ranges of up to a few hundred bytes. */
export function crc32Range(bytes: Uint8Array, offset: number, length: number, seed: number): number {
  return crcOfRange(TABLES, bytes, offset, length, seed);
}
