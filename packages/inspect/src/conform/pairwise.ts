/**
 * Combinations of parameters in which every pair of values of two parameters occurs (a covering array of strength 2):
 * faults that two parameters cause together are found, with far fewer runs than all combinations need.
 */

export type Parameters = Readonly<Record<string, readonly unknown[]>>;

export type Combination<P extends Parameters> = { readonly [Name in keyof P]: P[Name][number] };

export function pairwise<P extends Parameters>(parameters: P): Combination<P>[] {
  const values = Object.values(parameters);
  const names = Object.keys(parameters);
  const missing = new Set<string>();
  eachPair(values, (pair) => missing.add(pair));
  const rows: number[][] = [];
  while (missing.size > 0) {
    const row = seedRow([...missing][0], values.length);
    for (const [place, choices] of values.entries()) row[place] ??= bestChoice(row, place, choices.length, missing);
    const chosen = row as number[];
    for (const place of chosen.keys()) for (const pair of pairsOf(chosen, place)) missing.delete(pair);
    rows.push(chosen);
  }
  return rows.map(
    (row) => Object.fromEntries(row.map((choice, place) => [names[place], values[place][choice]])) as Combination<P>,
  );
}

function key(first: number, choice: number, second: number, other: number): string {
  return first < second ? `${first}:${choice},${second}:${other}` : `${second}:${other},${first}:${choice}`;
}

function eachPair(values: ReadonlyArray<readonly unknown[]>, visit: (pair: string) => void): void {
  for (let first = 0; first < values.length; first++) {
    for (let second = first + 1; second < values.length; second++) {
      for (const choice of values[first].keys()) {
        for (const other of values[second].keys()) visit(key(first, choice, second, other));
      }
    }
  }
}

function seedRow(pair: string, length: number): Array<number | undefined> {
  const row = Array<number | undefined>(length).fill(undefined);
  for (const part of pair.split(',')) {
    const [place, choice] = part.split(':').map(Number);
    row[place] = choice;
  }
  return row;
}

function bestChoice(
  row: ReadonlyArray<number | undefined>,
  place: number,
  choices: number,
  missing: ReadonlySet<string>,
): number {
  let best = 0;
  let most = -1;
  for (let choice = 0; choice < choices; choice++) {
    const tried = row.with(place, choice);
    const count = pairsOf(tried, place).filter((pair) => missing.has(pair)).length;
    if (count > most) [best, most] = [choice, count];
  }
  return best;
}

function pairsOf(row: ReadonlyArray<number | undefined>, place: number): string[] {
  return row.flatMap((other, second) =>
    other === undefined || second === place ? [] : [key(place, row[place]!, second, other)],
  );
}
