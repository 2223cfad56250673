/**
 * The codes of sealed extents: `data` pieces of equal length and further fragments that are linear combinations over
 * GF(2^8). A code is its matrix, one row of factors per fragment; lost fragments are recovered by elimination.
 * `rs-6-3`: Reed-Solomon with a Cauchy matrix, of which every square submatrix is invertible. `lrc-12-2-2`: Local
 * Reconstruction Code of Huang et al., "Erasure Coding in Windows Azure Storage" (USENIX ATC 2012), section 2: two
 * groups of six data fragments with one local parity each, and two global parities. It decodes every loss of three, and
 * of four all that any code with these groups can: 1,568 of 1,820.
 */

import { addMultiple, inverse, multiply } from './galois.js';

/** Names of the codes. */
export const CODE_NAMES = ['rs-6-3', 'lrc-12-2-2'] as const;

/** One of {@link CODE_NAMES}. */
export type CodeName = (typeof CODE_NAMES)[number];

export interface DecodingPlan {
  readonly sources: readonly number[];
  readonly rows: readonly Uint8Array[];
}

export class ErasureCode {
  readonly name: CodeName;
  readonly data: number;
  readonly total: number;
  readonly rows: readonly Uint8Array[];
  readonly #plans = new Map<string, DecodingPlan | undefined>();

  constructor(name: CodeName, sums: readonly Uint8Array[]) {
    this.name = name;
    this.data = sums[0].length;
    this.total = this.data + sums.length;
    this.rows = [...Array.from({ length: this.data }, (_, k) => unit(this.data, k)), ...sums];
  }

  /** Few are read: of an LRC those of a group if they are enough. */
  plan(wanted: readonly number[], there: readonly number[]): DecodingPlan | undefined {
    const sorted = [...there].sort((a, b) => a - b); // Data before sums of groups before sums of all.
    const key = `${wanted}<${sorted}`;
    if (!this.#plans.has(key)) this.#plans.set(key, this.#planned(wanted, sorted));
    return this.#plans.get(key);
  }

  isDecodable(there: readonly number[]): boolean {
    const data = Array.from({ length: this.data }, (_, k) => k);
    return this.plan(data, there) !== undefined;
  }

  #planned(wanted: readonly number[], there: readonly number[]): DecodingPlan | undefined {
    const basis: Reduced[] = [];
    for (const fragment of there) {
      const reduced = reduce({ row: this.rows[fragment].slice(), made: unit(this.total, fragment) }, basis);
      const pivot = reduced.row.findIndex((factor) => factor !== 0);
      if (pivot < 0) continue;
      const scale = inverse(reduced.row[pivot]);
      basis.push({ row: times(reduced.row, scale), made: times(reduced.made, scale), pivot });
    }
    const made: Uint8Array[] = [];
    for (const fragment of wanted) {
      const rest = reduce({ row: this.rows[fragment].slice(), made: new Uint8Array(this.total) }, basis);
      if (rest.row.some((factor) => factor !== 0)) return undefined;
      made.push(rest.made);
    }
    const sources = there.filter((fragment) => made.some((factors) => factors[fragment] !== 0));
    return { sources, rows: made.map((factors) => Uint8Array.from(sources, (fragment) => factors[fragment])) };
  }
}

interface Combination {
  readonly row: Uint8Array;
  readonly made: Uint8Array;
}

interface Reduced extends Combination {
  readonly pivot: number;
}

function reduce({ row, made }: Combination, basis: readonly Reduced[]): Combination {
  for (const one of basis) {
    const factor = row[one.pivot];
    addMultiple(row, one.row, factor);
    addMultiple(made, one.made, factor);
  }
  return { row, made };
}

function unit(length: number, at: number): Uint8Array {
  return Uint8Array.from({ length }, (_, k) => Number(k === at));
}

function times(row: Uint8Array, factor: number): Uint8Array {
  return row.map((element) => multiply(element, factor));
}

/** Rows of a Cauchy matrix: 1 / (x + y), where all x and y are different. */
function cauchy(data: number, sums: number): Uint8Array[] {
  return Array.from({ length: sums }, (_, x) =>
    Uint8Array.from({ length: data }, (_factor, y) => inverse(x ^ (sums + y))),
  );
}

/**
 * Two sums of groups, and two over all with factors c and c². Factors of one group have only low bits, and those of the
 * other only high ones: no sum of two of the first is one of two of the second, which is the condition of section
 * 2.2.2.
 */
function localReconstruction(group: number): Uint8Array[] {
  const factors = Uint8Array.from({ length: 2 * group }, (_, k) => (k < group ? k + 1 : (k - group + 1) << 4));
  return [
    factors.map((_, k) => Number(k < group)),
    factors.map((_, k) => Number(k >= group)),
    factors,
    factors.map((factor) => multiply(factor, factor)),
  ];
}

const CODES: Readonly<Record<CodeName, ErasureCode>> = {
  'rs-6-3': new ErasureCode('rs-6-3', cauchy(6, 3)),
  'lrc-12-2-2': new ErasureCode('lrc-12-2-2', localReconstruction(6)),
};

export function erasureCode(name: CodeName): ErasureCode {
  return CODES[name];
}
