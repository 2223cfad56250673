/**
 * CRC-32/ISO-HDLC (the polynomial of Ethernet, zlib and the ICRC) in the zlib convention: values chain, so
 * `crc32(b, crc32(a))` is the CRC of `a` followed by `b`.
 *
 * A native function is fastest from some 200 bytes on; below that the call and the view it needs cost more than the sum itself, so
 * short ranges go through tables in JavaScript.
 */

import { createRequire } from 'node:module';
import { crc32 as zlibCrc32 } from 'node:zlib';

type NativeCrc32 = (bytes: Uint8Array, seed?: number) => number;

function loadFastest(): { name: '@node-rs/crc32' | 'zlib'; crc32: NativeCrc32 } {
  try {
    const optional = createRequire(import.meta.url)('@node-rs/crc32') as { crc32: NativeCrc32 };
    return { name: '@node-rs/crc32', crc32: optional.crc32 };
  } catch {
    // Not installed, or no prebuilt binary for this platform: zlib's takes about twice as long.
    return { name: 'zlib', crc32: zlibCrc32 };
  }
}

const fastest = loadFastest();

/** Which implementation {@link crc32} calls. */
export const crc32Backend: '@node-rs/crc32' | 'zlib' = fastest.name;

/** CRC-32 of `bytes`, continuing from `seed` (an earlier result; 0 to start). Unsigned. */
export const crc32: NativeCrc32 = fastest.crc32;

/** At and below this many bytes {@link crc32Range} is faster than {@link crc32} on a view that has to be made first (measured). */
export const CRC32_RANGE_BYTES = 192;

/** The reflected polynomial. */
export const CRC32_POLYNOMIAL = 0xedb88320;

/** Eight tables in one: entry `256 * k + b` is the register after byte `b` and `k` zero bytes, from register 0. */
const TABLES = buildTables();

function buildTables(): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let register = byte;
    for (let bit = 0; bit < 8; bit++) register = register & 1 ? (register >>> 1) ^ CRC32_POLYNOMIAL : register >>> 1;
    tables[byte] = register;
  }
  for (let i = 256; i < tables.length; i++) tables[i] = (tables[i - 256] >>> 8) ^ tables[tables[i - 256] & 0xff];
  return tables;
}

/** CRC-32 of `bytes[offset, offset + length)`, continuing from `seed`. Needs no view; meant for ranges of up to a few hundred bytes. */
export function crc32Range(bytes: Uint8Array, offset: number, length: number, seed: number): number {
  const t = TABLES;
  const end = offset + length;
  const lastBlock = end - 8;
  let register = ~seed;
  let i = offset;
  for (; i <= lastBlock; i += 8) {
    register ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    register =
      t[1792 + (register & 0xff)] ^
      t[1536 + ((register >>> 8) & 0xff)] ^
      t[1280 + ((register >>> 16) & 0xff)] ^
      t[1024 + (register >>> 24)] ^
      t[768 + bytes[i + 4]] ^
      t[512 + bytes[i + 5]] ^
      t[256 + bytes[i + 6]] ^
      t[bytes[i + 7]];
  }
  for (; i < end; i++) register = (register >>> 8) ^ t[(register ^ bytes[i]) & 0xff];
  return ~register >>> 0;
}
