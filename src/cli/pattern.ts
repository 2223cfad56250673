/** Bytes that tell where they belong: a packet placed elsewhere, missing or of another message does not match. */

function patternByte(seed: number, i: number): number {
  return (seed + i * 31 + (i >>> 8) * 17 + (i >>> 16) * 7) & 0xff;
}

/** Fills with the pattern of this seed (0..255). */
export function fillPattern(bytes: Uint8Array, seed: number): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = patternByte(seed, i);
}

/** Index of the first byte that is not the pattern's, or -1. */
export function patternMismatch(bytes: Uint8Array, seed: number): number {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== patternByte(seed, i)) return i;
  return -1;
}
