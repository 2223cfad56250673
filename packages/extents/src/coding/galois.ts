/**
 * Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), which Reed-Solomon codes of storage use: addition is XOR, and multiplication adds
 * logarithms to the base 2.
 */

const POLYNOMIAL = 0x11d;
/** Elements other than 0. */
const ORDER = 255;

const powers = new Uint8Array(2 * ORDER);
const logarithms = new Uint8Array(256);
for (let power = 0, element = 1; power < ORDER; power++) {
  powers[power] = element;
  powers[power + ORDER] = element;
  logarithms[element] = power;
  element <<= 1;
  if (element > 0xff) element ^= POLYNOMIAL;
}

/** The product of two elements, 0 to 255. */
export function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : powers[logarithms[a] + logarithms[b]];
}

/** The element whose product with `a` is 1; `a` is not 0. */
export function inverse(a: number): number {
  return powers[ORDER - logarithms[a]];
}

/** Adds `factor` times `row` to `to`, element by element. */
export function addMultiple(to: Uint8Array, row: Uint8Array, factor: number): void {
  if (factor === 0) return;
  for (let k = 0; k < to.length; k++) to[k] ^= multiply(factor, row[k]);
}
