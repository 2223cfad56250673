/**
 * Checks a CRC-32 by its check value, then many lengths, offsets and continued checksums against a known answer. A
 * second implementation is not used for comparison: each thread runs this at start, and compiling it would take longer
 * than the rest.
 */

import type { Crc32Implementation } from '../../core/node-crc32.js';
import { patternlessBytes } from '../../core/patternless-bytes.js';

const DIGITS = Uint8Array.of(0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39);
const CHECK_VALUE = 0xcbf43926;

/** Around the widths in which vector code takes its bytes, and the lengths of packets of all path MTUs. */
const LENGTHS = [
  1, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257, 268, 300, 511, 512, 513, 524, 777, 1023, 1024,
  1036, 1055, 2047, 2048, 2060, 2049, 3001, 4096, 4108, 4124, 4140,
];
const OFFSETS = [0, 1, 4, 7, 16, 31, 33, 60];
const SEEDS = [0xffffffff, 0x80000000, 0, 0x2144df1c];
const ROOM_BYTES = 4200;
/** The expected mix of the checksums of all {@link LENGTHS}. */
const KNOWN_MIX = 0xee8a4442;

export function sumsRight(implementation: Crc32Implementation): boolean {
  const { sum } = implementation;
  if (sum(DIGITS, 0) !== CHECK_VALUE || sum(DIGITS.subarray(4), sum(DIGITS.subarray(0, 4), 0)) !== CHECK_VALUE) {
    return false;
  }
  const bytes = patternlessBytes(ROOM_BYTES);
  let mix = 0;
  for (const [i, length] of LENGTHS.entries()) {
    const one = agreedSum(implementation, bytes, OFFSETS[i % OFFSETS.length], length, SEEDS[i % SEEDS.length]);
    if (one === undefined) return false;
    // The step of FNV-1a, which is invertible: one wrong checksum always changes the mix.
    mix = Math.imul(mix ^ one, 0x01000193);
  }
  return mix >>> 0 === KNOWN_MIX;
}

function agreedSum(
  { sum, sumAt }: Crc32Implementation,
  bytes: Uint8Array,
  offset: number,
  length: number,
  seed: number,
): number | undefined {
  const half = length >> 1;
  const view = bytes.subarray(offset, offset + length);
  const one = sum(view, seed);
  const isAgreed =
    one === one >>> 0 &&
    sum(view, seed | 0) === one &&
    sumAt(bytes, offset, length, seed) >>> 0 === one &&
    sumAt(bytes, offset, length, seed | 0, view) >>> 0 === one &&
    sum(view.subarray(half), sum(view.subarray(0, half), seed)) === one;
  return isAgreed ? one : undefined;
}
