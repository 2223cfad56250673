/** The Internet checksum (RFC 1071): the complement of the ones' complement sum of 16-bit words. */

/**
 * Adds `b[o, o + length)` as big-endian words to `sum`; an odd last byte counts as a high byte. Good for a sum over 64
 * KiB.
 */
export function addWords(b: Uint8Array, o: number, length: number, sum: number): number {
  const end = o + length;
  let total = sum;
  let i = o;
  for (; i + 1 < end; i += 2) total += (b[i] << 8) | b[i + 1];
  return i < end ? total + (b[i] << 8) : total;
}

/** The checksum of a sum of words: 0 when the words held a correct checksum already. */
export function finishChecksum(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x10000);
  return ~folded & 0xffff;
}
