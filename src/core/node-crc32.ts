/** CRC-32 by native code that Node.js finds or has. */

import { crc32 as zlibSum } from 'node:zlib';
import { requirePackage } from './packages.js';
import { rememberedView } from './view-cache.js';

/** Seeds may have a sign. */
export interface Crc32Implementation {
  readonly name: string;
  readonly sum: (bytes: Uint8Array, seed: number) => number;
  /** Of a range of `bytes`: 32 bits, with a sign or without. `view` may be a view of exactly this range. */
  readonly sumAt: (bytes: Uint8Array, offset: number, length: number, seed: number, view?: Uint8Array) => number;
}

export function nodeRsCrc32(): Crc32Implementation {
  const { crc32: sum } = requirePackage<{ crc32: Crc32Implementation['sum'] }>('@node-rs/crc32');
  return viewSums('@node-rs/crc32', sum);
}

export function zlibCrc32(): Crc32Implementation {
  return viewSums('zlib', zlibSum);
}

function viewSums(name: string, sum: Crc32Implementation['sum']): Crc32Implementation {
  return {
    name,
    sum: (bytes, seed) => sum(bytes, seed >>> 0),
    sumAt: (bytes, offset, length, seed, view) => sum(view ?? rememberedView(bytes, offset, length), seed >>> 0),
  };
}
