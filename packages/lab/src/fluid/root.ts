/** Bracketing root search on one real variable. */

import { RoceError } from 'rocev2/internal/core';

const MAX_HALVINGS = 200;

export function bisect(f: (x: number) => number, low: number, high: number, tolerance: number): number {
  const startsNegative = f(low) < 0;
  if (startsNegative === f(high) < 0) {
    const hint = 'no number between them changes its sign';
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `these parameters have no solution from ${low} to ${high}`, hint);
  }
  for (let i = 0; i < MAX_HALVINGS && high - low > tolerance; i++) {
    const middle = (low + high) / 2;
    if (f(middle) < 0 === startsNegative) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
