/** A predicate: differs from `expected` by at most the given share of it. */
export function within(expected: number, share: number): (value: unknown) => boolean {
  return (value) => typeof value === 'number' && Math.abs(value - expected) <= share * Math.abs(expected);
}

/** A predicate: lies between `low` and `high`. */
export function between(low: number, high: number): (value: unknown) => boolean {
  return (value) => typeof value === 'number' && value >= low && value <= high;
}
