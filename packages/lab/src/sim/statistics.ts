/** Numbers over many samples. */

import { checkNumber, checkNumbers } from '../check-arguments.js';

/** The p-quantile (0..1) of ascending values by nearest rank; NaN for none. */
export function quantile(ascending: ArrayLike<number>, p: number): number {
  checkNumbers('ascending', ascending);
  checkNumber('p', p, 0, 1);
  if (ascending.length === 0) return Number.NaN;
  return ascending[Math.min(ascending.length - 1, Math.max(0, Math.ceil(p * ascending.length) - 1))];
}

/** Arithmetic mean; NaN for no values. */
export function mean(values: ArrayLike<number>): number {
  checkNumbers('values', values);
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum / values.length;
}

/** Jain's fairness index: 1 when all are equal, 1/n when one has everything; 1 for no values. */
export function jainIndex(values: readonly number[]): number {
  checkNumbers('values', values);
  const sum = values.reduce((a, b) => a + b, 0);
  const squares = values.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares);
}

export class Samples {
  #values: Float64Array | Uint32Array;
  #count = 0;

  /** `kind`: `whole` for numbers from 0 to 2^32 - 1 without fractions, which take half of the memory. */
  constructor(kind: 'real' | 'whole' = 'real') {
    this.#values = kind === 'real' ? new Float64Array(1024) : new Uint32Array(1024);
  }

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const values = this.#values;
      const size = 2 * this.#count;
      this.#values = values instanceof Float64Array ? new Float64Array(size) : new Uint32Array(size);
      this.#values.set(values);
    }
    this.#values[this.#count++] = value;
  }

  get values(): Float64Array | Uint32Array {
    return this.#values.subarray(0, this.#count);
  }

  sorted(): Float64Array | Uint32Array {
    return this.values.slice().sort();
  }
}
