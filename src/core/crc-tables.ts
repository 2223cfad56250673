/**
 * CRCs of 32 bits with reflected polynomials, eight bytes per step ("slicing by 8"), in the zlib convention: values
 * chain.
 */

/** Eight tables in one: entry `256 * k + b` is the register after byte `b` and `k` zero bytes, from register 0. */
export function crcTables(polynomial: number): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let register = byte;
    for (let bit = 0; bit < 8; bit++) register = register & 1 ? (register >>> 1) ^ polynomial : register >>> 1;
    tables[byte] = register;
  }
  for (let i = 256; i < tables.length; i++) tables[i] = (tables[i - 256] >>> 8) ^ tables[tables[i - 256] & 0xff];
  return tables;
}

export function crcOfRange(t: Int32Array, bytes: Uint8Array, offset: number, length: number, seed: number): number {
  return signedCrcOfRange(t, bytes, offset, length, seed) >>> 0;
}

/** The same, signed: V8 passes such 32 bits between functions without allocating. */
export function signedCrcOfRange(
  t: Int32Array,
  bytes: Uint8Array,
  offset: number,
  length: number,
  seed: number,
): number {
  const end = offset + length;
  const lastBlock = end - 8;
  let register = ~seed;
  let i = offset;
  for (; i <= lastBlock; i += 8) {
    register ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    register = crcStep(t, register, bytes, i + 4);
  }
  for (; i < end; i++) register = (register >>> 8) ^ t[(register ^ bytes[i]) & 0xff];
  return ~register;
}

/**
 * The same for `words[start, start + count)`, whose bytes are in the order of this machine, little-endian: 92 bytes
 * take 57 instead of 82 ns, because there is a load for every four of them.
 */
export function signedCrcOfWords(t: Int32Array, words: Int32Array, start: number, count: number, seed: number): number {
  const end = start + count;
  let register = ~seed;
  let i = start;
  for (; i < end - 1; i += 2) {
    const first = words[i] ^ register;
    const second = words[i + 1];
    register =
      t[1792 + (first & 0xff)] ^
      t[1536 + ((first >>> 8) & 0xff)] ^
      t[1280 + ((first >>> 16) & 0xff)] ^
      t[1024 + (first >>> 24)] ^
      t[768 + (second & 0xff)] ^
      t[512 + ((second >>> 8) & 0xff)] ^
      t[256 + ((second >>> 16) & 0xff)] ^
      t[second >>> 24];
  }
  if (i < end) {
    const last = words[i] ^ register;
    register =
      t[768 + (last & 0xff)] ^ t[512 + ((last >>> 8) & 0xff)] ^ t[256 + ((last >>> 16) & 0xff)] ^ t[last >>> 24];
  }
  return ~register;
}

/** The register after eight bytes: the first four are mixed into `register` already, the others are at `bytes[i]`. */
export function crcStep(t: Int32Array, register: number, bytes: Uint8Array, i: number): number {
  return (
    t[1792 + (register & 0xff)] ^
    t[1536 + ((register >>> 8) & 0xff)] ^
    t[1280 + ((register >>> 16) & 0xff)] ^
    t[1024 + (register >>> 24)] ^
    t[768 + bytes[i]] ^
    t[512 + bytes[i + 1]] ^
    t[256 + bytes[i + 2]] ^
    t[bytes[i + 3]]
  );
}
