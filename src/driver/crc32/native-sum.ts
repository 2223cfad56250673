/**
 * CRC-32 by a system library through koffi, which uses VPCLMULQDQ as no npm package does. Arrays are passed by address;
 * a detached array has length 0 and fails the bounds check. Numbers are passed as signed 32 bits, which V8 keeps
 * without allocating.
 */

import { CRC32_RANGE_BYTES, crc32Range, crc32RangeSigned } from '../../core/crc32.js';
import { RoceError } from '../../core/errors.js';
import type { Crc32Implementation } from '../../core/node-crc32.js';
import { koffiPackage, libC } from '../../dgram-ext/libc.js';
import { rememberedAddresses } from '../../dgram-ext/remembered-addresses.js';

/** A function `uint32_t NAME(uint32_t seed, const void *bytes, size_t length)` in the zlib convention. */
export interface NativeSum {
  readonly name: string;
  readonly library: string;
  readonly symbol: string;
}

export function nativeCrc32({ name, library, symbol }: NativeSum): Crc32Implementation {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `${library} cannot be called: ${lib}`);
  const loaded = koffiPackage().load(library);
  const sumOfAddress: (seed: number, address: number, length: number) => number = loaded.func(
    `int ${symbol}(int, uintptr_t, size_t)`,
  );
  const sumOfView: (seed: number, bytes: Uint8Array, length: number) => number = loaded.func(
    `int ${symbol}(int, const void *, size_t)`,
  );
  const addressOf = rememberedAddresses(lib);
  return {
    name,
    sum: (bytes, seed) => {
      const { length } = bytes;
      if (length <= CRC32_RANGE_BYTES) return crc32Range(bytes, 0, length, seed);
      return sumOfView(seed | 0, bytes, length) >>> 0;
    },
    sumAt: (bytes, offset, length, seed) => {
      if (length <= CRC32_RANGE_BYTES) return crc32RangeSigned(bytes, offset, length, seed);
      if (offset < 0 || offset + length > bytes.length) throw new RangeError('these bytes are not all in the array');
      return sumOfAddress(seed | 0, addressOf(bytes) + offset, length);
    },
  };
}
