/** A name may differ from the one that was meant by a third of its letters, and by at least one. */
const DIFFERENCES_PER_LETTER = 1 / 3;

export function nearestName(name: string, names: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let fewest = Math.max(1, Math.floor(name.length * DIFFERENCES_PER_LETTER)) + 1;
  for (const candidate of names) {
    const differences = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (differences >= fewest) continue;
    fewest = differences;
    nearest = candidate;
  }
  return nearest;
}

export function namesHint(name: unknown, names: readonly string[], list: string): string {
  const meant = typeof name === 'string' ? nearestName(name, names) : undefined;
  const all = `${list} ${names.join(', ')}`;
  return meant === undefined ? all : `did you mean '${meant}'? ${all[0].toUpperCase()}${all.slice(1)}`;
}

/** Letters to insert, remove, replace or swap with their neighbour (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(replaced, last[j] + 1, row[j - 1] + 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}
