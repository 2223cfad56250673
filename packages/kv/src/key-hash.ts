/**
 * Where a key belongs. MurmurHash3 (32 bits, by Austin Appleby, public domain): quick on short keys; the seed is the
 * store's own.
 */

export interface KeyPosition {
  readonly bucket: number;
  /** 1 to 65,535: differs for most other keys of these buckets. */
  readonly fingerprint: number;
}

export function keyPositionOf(key: Uint8Array, buckets: number, seed: number): KeyPosition {
  const hash = murmur3(key, seed);
  const other = murmur3(key, ~seed);
  return { bucket: Math.floor((hash / 2 ** 32) * buckets), fingerprint: (other % 0xffff) + 1 };
}

export function murmur3(bytes: Uint8Array, seed: number): number {
  let hash = seed | 0;
  const whole = bytes.length & ~3;
  for (let i = 0; i < whole; i += 4)
    hash = mixed(hash, bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24));
  if (whole < bytes.length) {
    let tail = 0;
    for (let i = bytes.length - 1; i >= whole; i--) tail = (tail << 8) | bytes[i];
    hash ^= scrambled(tail);
  }
  hash ^= bytes.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function mixed(hash: number, word: number): number {
  const next = hash ^ scrambled(word);
  return (Math.imul((next << 13) | (next >>> 19), 5) + 0xe6546b64) | 0;
}

function scrambled(word: number): number {
  const next = Math.imul(word, 0xcc9e2d51);
  return Math.imul((next << 15) | (next >>> 17), 0x1b873593);
}
