/** Whether a CRC-32 is the right one: its check value, then many lengths, places and continued sums against the tables in JavaScript. */

import { type Crc32Implementation, crc32Range } from '../../core/crc32.js';

/** Of the nine digits (the check value in catalogues of CRCs). */
const DIGITS = Uint8Array.of(0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39);
const CHECK_VALUE = 0xcbf43926;

/** Around the widths in which vector code takes its bytes, and the lengths of packets of all path MTUs. */
const LENGTHS = [
  1, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257, 268, 300, 511, 512, 513, 524, 777, 1023, 1024,
  1036, 1055, 2047, 2048, 2060, 2049, 3001, 4096, 4108, 4124, 4140,
];
/** Places modulo the widest vector, aligned and not. */
const OFFSETS = [0, 1, 4, 7, 16, 31, 33, 60];
/** What sums are continued from: all bits, the sign bit, none. */
const SEEDS = [0xffffffff, 0x80000000, 0, 0x2144df1c];

/** True when all sums are right. Takes well under a millisecond. */
export function sumsRight({ sum, sumAt }: Crc32Implementation): boolean {
  if (sum(DIGITS, 0) !== CHECK_VALUE || sum(DIGITS.subarray(4), sum(DIGITS.subarray(0, 4), 0)) !== CHECK_VALUE) {
    return false;
  }
  const bytes = new Uint8Array(new ArrayBuffer(8192));
  let state = 1;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator: any bytes without a pattern do.
    bytes[i] = state >>> 24;
  }
  return LENGTHS.every((length, i) => {
    const offset = OFFSETS[i % OFFSETS.length];
    const seed = SEEDS[i % SEEDS.length];
    const right = crc32Range(bytes, offset, length, seed);
    const half = length >> 1;
    const view = bytes.subarray(offset, offset + length);
    return (
      sum(view, seed) === right &&
      sum(view, seed | 0) === right &&
      sumAt(bytes, offset, length, seed) >>> 0 === right &&
      sumAt(bytes, offset, length, seed | 0, view) >>> 0 === right &&
      sum(view.subarray(half), sum(view.subarray(0, half), seed)) === right
    );
  });
}
