export function appendBounded<T>(list: T[], item: T, limit: number): void {
  list.push(item);
  if (list.length > limit) list.shift();
}

export function withCount(text: string, times: number): string {
  return times === 1 ? text : `${text}, ${times} times`;
}
