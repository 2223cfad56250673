/** Lists that keep the newest of what they were given, and text about what was counted. */

/** Appends `item` and drops the oldest one beyond `limit`. */
export function appendBounded<T>(list: T[], item: T, limit: number): void {
  list.push(item);
  if (list.length > limit) list.shift();
}

/** `packet dropped, 3 times`; the text alone for one time. */
export function withCount(text: string, times: number): string {
  return times === 1 ? text : `${text}, ${times} times`;
}
