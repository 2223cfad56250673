/**
 * CRC-32/ISO-HDLC (the polynomial of Ethernet, zlib and the ICRC) in the zlib convention: values chain, so
 * `crc32(b, crc32(a))` is the CRC of `a` followed by `b`.
 *
 * A native function is fastest from some 200 bytes on; below that the call and the view it needs cost more than the
 * computation, so short ranges go through tables in JavaScript. Each thread selects its native function ({@link
 * useCrc32}): devices take the fastest that is available (`driver/crc32`); code without a device uses the package, or
 * zlib; in a browser, JavaScript.
 */

import { IS_LITTLE_ENDIAN, wordsToCopy } from './bytes.js';
import { crcOfRange, crcStep, crcTables, signedCrcOfRange, signedCrcOfWords } from './crc-tables.js';
import type { Crc32Implementation } from './node-crc32.js';
import { packagedCrc32 } from './packaged-crc32.js';

let implementation: Crc32Implementation | undefined;

/** CRC-32 of `bytes`, continuing from `seed` (an earlier result; 0 to start). Unsigned. */
export let crc32 = (bytes: Uint8Array, seed = 0): number => {
  useDefault();
  return crc32(bytes, seed);
};

/**
 * CRC-32 of `bytes[offset, offset + length)`, `length` > 0, of a long-lived array such as a slab: data about the array
 * are cached. `view` may be a view of exactly these bytes. Result and `seed` may be signed; compare with `>>> 0`.
 */
export let crc32At: Crc32Implementation['sumAt'] = (bytes, offset, length, seed, view) => {
  useDefault();
  return crc32At(bytes, offset, length, seed, view);
};

export function useCrc32(chosen: Crc32Implementation): void {
  implementation = chosen;
  const { sum, sumAt } = chosen;
  crc32 = (bytes, seed = 0) => sum(bytes, seed);
  crc32At = sumAt;
}

function useDefault(): void {
  useCrc32(packagedCrc32() ?? javaScriptCrc32());
}

export function crc32Backend(): string {
  if (implementation === undefined) useDefault();
  return implementation!.name;
}

export function javaScriptCrc32(): Crc32Implementation {
  return {
    name: 'javascript',
    sum: (bytes, seed) => crc32Range(bytes, 0, bytes.length, seed),
    sumAt: crc32RangeSigned,
  };
}

/**
 * At and below this many bytes {@link crc32Range} is faster than {@link crc32} on a view that has to be made first
 * (measured).
 */
export const CRC32_RANGE_BYTES = 192;

export const CRC32_POLYNOMIAL = 0xedb88320;

const TABLES = crcTables(CRC32_POLYNOMIAL);

/** Needs no view; meant for ranges of up to a few hundred bytes. */
export function crc32Range(bytes: Uint8Array, offset: number, length: number, seed: number): number {
  return crcOfRange(TABLES, bytes, offset, length, seed);
}

/** The same, signed, for the packet path, which allocates nothing. */
export function crc32RangeSigned(bytes: Uint8Array, offset: number, length: number, seed: number): number {
  return signedCrcOfRange(TABLES, bytes, offset, length, seed);
}

/**
 * {@link crc32RangeSigned} for an array that lives long, such as a slab, where packets begin at multiples of four and
 * have whole words: it reads four bytes at a time.
 */
export function crc32PacketSigned(bytes: Uint8Array, offset: number, length: number, seed: number): number {
  if (((offset | length) & 3) === 0 && IS_LITTLE_ENDIAN) {
    const words = wordsToCopy(bytes);
    if (words.length > 0) return signedCrcOfWords(TABLES, words, offset >>> 2, length >>> 2, seed);
  }
  return signedCrcOfRange(TABLES, bytes, offset, length, seed);
}

/**
 * Eight bytes of a CRC-32 that is computed by hand, because some of them are masked: `register` is the inverted CRC of
 * what precedes, mixed (XOR) with the first four bytes as a little-endian number; the other four are at `bytes[i]`.
 * Returns the inverted CRC.
 */
export function crc32Step(register: number, bytes: Uint8Array, i: number): number {
  return crcStep(TABLES, register, bytes, i);
}
