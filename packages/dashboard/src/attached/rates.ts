/**
 * What is counted from 0 again, because a connection of the same name or a program at the same place is a new one, has
 * grown by its value: never backwards.
 */
export function growth(now: number, before: number | undefined): number {
  return before === undefined || now < before ? now : now - before;
}

export interface Change<D> {
  readonly now: D;
  readonly before: D;
}

export interface TimedChange<D> extends Change<D> {
  readonly seconds: number;
}

export function moved<D>({ now, before }: Change<D>, counter: (document: D) => number): number {
  return growth(counter(now), counter(before));
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
