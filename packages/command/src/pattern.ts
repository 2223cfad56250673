/** A data pattern that depends on the position, so that a misplaced, missing or foreign packet does not match. */

/** A hash of the index (the first steps of MurmurHash3's finalizer): no two packets have the same bytes. */
function patternByte(seed: number, i: number): number {
  const mixed = Math.imul(i ^ (seed << 24), 0x85ebca6b);
  return Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) >>> 24;
}

export function fillPattern(bytes: Uint8Array, seed: number): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = patternByte(seed, i);
}

export function patternMismatch(bytes: Uint8Array, seed: number): number {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== patternByte(seed, i)) return i;
  return -1;
}
