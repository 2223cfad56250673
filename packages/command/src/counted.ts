/** How many there are of something, in words. */

/** `1 violation`, `3 violations`; `many` for words that take no s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
