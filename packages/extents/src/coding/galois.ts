/**
 * GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), as Reed-Solomon codes of storage use it: addition is
 * XOR, multiplication adds logarithms to the base 2.
 */

const POLYNOMIAL = 0x11d;
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

export function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : powers[logarithms[a] + logarithms[b]];
}

export function inverse(a: number): number {
  return powers[ORDER - logarithms[a]];
}

export function addMultiple(to: Uint8Array, row: Uint8Array, factor: number): void {
  if (factor === 0) return;
  for (let k = 0; k < to.length; k++) to[k] ^= multiply(factor, row[k]);
}
