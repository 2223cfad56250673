/** What both histories of the dashboard do: remember the newest things, and say how often one happened. */

/** Appends, and lets the oldest go beyond `limit`. */
export function keep<T>(list: T[], item: T, limit: number): void {
  list.push(item);
  if (list.length > limit) list.shift();
}

/** `packet dropped, 3 times`. */
export function repeated(text: string, times: number): string {
  return times === 1 ? text : `${text}, ${times} times`;
}
