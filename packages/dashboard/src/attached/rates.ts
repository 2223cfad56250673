/** Rates from counters that were read twice. */

/**
 * How far a counter moved. What is counted from 0 again, because a connection of the same name or a program at the same place is a new one,
 * has moved by what it says: never backwards.
 */
export function growth(now: number, before: number | undefined): number {
  return before === undefined || now < before ? now : now - before;
}

/** Two readings of one program. */
export interface Change<D> {
  /** The newer one. */
  readonly now: D;
  /** The older one. */
  readonly before: D;
}

/** With the time between them. */
export interface Interval<D> extends Change<D> {
  /** Above 0. */
  readonly seconds: number;
}

/** Growth of a counter that both readings have. */
export function moved<D>({ now, before }: Change<D>, counter: (document: D) => number): number {
  return growth(counter(now), counter(before));
}

/** 0 for none. */
export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
