import { multiply } from './galois.js';

export type Combine = (
  rows: readonly Uint8Array[],
  sources: readonly Uint8Array[],
  outs: readonly Uint8Array[],
) => void;

export interface Combiner {
  combine(rows: readonly Uint8Array[], sources: readonly Uint8Array[]): Promise<Buffer[]>;
}

/** Bytes that are combined in one pass: they stay in the L1 cache. */
const PASS_BYTES = 4096;
const LANES = 4;

const word = new Uint32Array(PASS_BYTES);

/** In TypeScript: a table of 256 words for each source has the products for up to four rows in one look-up. */
export const portableCombine: Combine = (rows, sources, outs) => {
  for (let first = 0; first < rows.length; first += LANES) {
    const lanes = rows.slice(first, first + LANES);
    const tables = sources.map((_, source) => productsOf(lanes.map((row) => row[source])));
    const length = outs[first].length;
    for (let from = 0; from < length; from += PASS_BYTES) {
      const to = Math.min(from + PASS_BYTES, length);
      word.fill(0);
      for (const [source, bytes] of sources.entries()) addProducts(bytes, from, to, tables[source]);
      for (let lane = 0; lane < lanes.length; lane++) takeLane(outs[first + lane], from, to, 8 * lane);
    }
  }
};

function productsOf(factors: readonly number[]): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) =>
    factors.reduce((products, factor, lane) => products | (multiply(factor, byte) << (8 * lane)), 0),
  );
}

function addProducts(bytes: Uint8Array, from: number, to: number, table: Uint32Array): void {
  for (let at = from, k = 0; at < to; at++, k++) word[k] ^= table[bytes[at]];
}

function takeLane(out: Uint8Array, from: number, to: number, shift: number): void {
  for (let at = from, k = 0; at < to; at++, k++) out[at] = word[k] >>> shift;
}

export function combinerOf(combine: Combine): Combiner {
  return {
    combine: async (rows, sources) => {
      const outs = rows.map(() => Buffer.alloc(sources[0].length));
      combine(rows, sources, outs);
      return outs;
    },
  };
}

export function partsOf(bytes: Uint8Array, count: number): Uint8Array[] {
  const length = bytes.length / count;
  return Array.from({ length: count }, (_, k) => bytes.subarray(k * length, (k + 1) * length));
}

/** Around the widths in which vector code takes its bytes. */
const LENGTHS = [1, 15, 16, 31, 32, 33, 63, 64, 65, 127, 129, 255, 1023, 4096, 4101];

export function combinesRight(combine: Combine): boolean {
  let state = 1;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  };
  return LENGTHS.every((length, k) => {
    const bytes = () => new Uint8Array(new ArrayBuffer(length + 8), k % 8, length).map(next);
    const sources = Array.from({ length: 1 + (k % 12) }, bytes);
    const rows = Array.from({ length: 1 + (k % 5) }, () => Uint8Array.from(sources, next));
    const outs = rows.map(() => new Uint8Array(length));
    combine(rows, sources, outs);
    return rows.every((row, r) =>
      outs[r].every((sum, at) => sum === sources.reduce((right, source, s) => right ^ multiply(row[s], source[at]), 0)),
    );
  });
}
