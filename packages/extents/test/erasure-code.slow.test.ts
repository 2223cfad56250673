/** The codes: every loss that each of them allows comes back, and no other one is said to. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { type Combine, combinesRight, portableCombine } from '../src/coding/combiner.js';
import { CODE_NAMES, type ErasureCode, erasureCode } from '../src/coding/erasure-code.js';
import { inverse, multiply } from '../src/coding/galois.js';
import { isaLCombine } from '../src/live/native-combine.js';

const BYTES = 259;

/** All sets of so many of the numbers below `total`. */
function* sets(total: number, size: number, from = 0): Generator<number[]> {
  if (size === 0) yield [];
  else for (let k = from; k < total; k++) for (const rest of sets(total, size - 1, k + 1)) yield [k, ...rest];
}

function combined(combine: Combine, rows: readonly Uint8Array[], sources: readonly Uint8Array[]): Uint8Array[] {
  const outs = rows.map(() => new Uint8Array(BYTES));
  combine(rows, sources, outs);
  return outs;
}

function encoded(code: ErasureCode, combine: Combine): Uint8Array[] {
  const random = new SeededRandom(6).stream('data');
  const data = Array.from({ length: code.data }, () => Uint8Array.from({ length: BYTES }, () => random.u32() & 0xff));
  return combined(combine, code.rows, data);
}

/** Number of losses of `size` fragments that come back with their bytes. Every other one is refused. */
function decodable(code: ErasureCode, size: number, combine: Combine = portableCombine): number {
  const fragments = encoded(code, combine);
  let count = 0;
  for (const lost of sets(code.total, size)) {
    const there = fragments.map((_, k) => k).filter((k) => !lost.includes(k));
    const plan = code.plan(lost, there);
    if (code.isDecodable(there) !== (plan !== undefined)) throw new Error(`${lost}: decodable or not?`);
    if (plan === undefined) continue;
    count++;
    const sources = plan.sources.map((k) => fragments[k]);
    const back = Buffer.concat(combined(combine, plan.rows, sources));
    if (!back.equals(Buffer.concat(lost.map((k) => fragments[k])))) throw new Error(`${lost}: other bytes`);
  }
  return count;
}

describe('GF(2^8)', () => {
  it('has the products of polynomials modulo 0x11d, and inverses', () => {
    const long = (a: number, b: number) => {
      let product = 0;
      for (let bit = 0; bit < 8; bit++) if ((b >> bit) & 1) product ^= a << bit;
      for (let bit = 14; bit >= 8; bit--) if ((product >> bit) & 1) product ^= 0x11d << (bit - 8);
      return product;
    };
    for (let a = 0; a < 256; a++) {
      for (let b = 0; b < 256; b++) expect(multiply(a, b)).toBe(long(a, b));
      if (a > 0) expect(multiply(a, inverse(a))).toBe(1);
    }
  });
});

describe('rs-6-3', () => {
  const code = erasureCode('rs-6-3');

  it('brings every loss of up to three of nine back, and none of four', () => {
    expect([1, 2, 3, 4].map((size) => decodable(code, size))).toEqual([9, 36, 84, 0]);
  });

  it('reads six fragments for one', () => {
    for (let lost = 0; lost < 9; lost++) {
      const there = [0, 1, 2, 3, 4, 5, 6, 7, 8].filter((k) => k !== lost);
      expect(code.plan([lost], there)!.sources).toHaveLength(6);
    }
  });
});

describe('lrc-12-2-2', () => {
  const code = erasureCode('lrc-12-2-2');

  it('brings every loss of up to three of sixteen back, and the 1,568 of 1,820 losses of four that any such code can', () => {
    expect([1, 2, 3, 4].map((size) => decodable(code, size))).toEqual([16, 120, 560, 1568]);
    // Four sums bring no more than four back, and no group has more than its own sum and the two over all.
    for (const lost of sets(16, 4)) {
      const inGroup = (group: number) => lost.filter((k) => (k < 12 ? Math.floor(k / 6) : k - 12) === group).length;
      const rest = [0, 1].map((group) => Math.max(0, inGroup(group) - 1));
      const isPossible = rest[0] + rest[1] + lost.filter((k) => k >= 14).length <= 2;
      const there = code.rows.map((_, k) => k).filter((k) => !lost.includes(k));
      expect(code.isDecodable(there), `${lost}`).toBe(isPossible);
    }
    expect(decodable(code, 5)).toBe(0);
  });

  it('reads the six others of the group for one of its fragments, also when the other group has lost one', () => {
    const groups = [
      [0, 1, 2, 3, 4, 5, 12],
      [6, 7, 8, 9, 10, 11, 13],
    ];
    for (const [g, group] of groups.entries()) {
      for (const lost of group) {
        const there = code.rows.map((_, k) => k).filter((k) => k !== lost && k !== groups[1 - g][2]);
        expect(code.plan([lost], there)!.sources).toEqual(group.filter((k) => k !== lost));
      }
    }
    expect(code.plan([14], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15])!.sources).toHaveLength(12);
  });
});

describe('sums of products', () => {
  it('in TypeScript are right, and wrong ones are found out', () => {
    expect(combinesRight(portableCombine)).toBe(true);
    const wrong: Combine = (rows, sources, outs) => {
      portableCombine(rows, sources, outs);
      if (outs[0].length > 4096) outs[0][4098] ^= 1;
    };
    expect(combinesRight(wrong)).toBe(false);
  });

  it('by ISA-L are the same, where the system has it', ({ skip }) => {
    let native: Combine;
    try {
      native = isaLCombine();
    } catch (error) {
      return skip((error as Error).message);
    }
    expect(combinesRight(native)).toBe(true);
    for (const code of CODE_NAMES)
      expect(encoded(erasureCode(code), native)).toEqual(encoded(erasureCode(code), portableCombine));
    expect(decodable(erasureCode('rs-6-3'), 3, native)).toBe(84);
  });
});
