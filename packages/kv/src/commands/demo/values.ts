/** The entries that all stores of the demonstration have. */

/** How many there are. */
export const KEYS = 1000;
const VALUE_BYTES = 100;

/** The key with this number. */
export function keyFor(key: number): string {
  return `key:${key}`;
}

/** Its value: printable, so that every store can have it. */
export function valueFor(key: number): string {
  return `${key}:`.padEnd(VALUE_BYTES, String.fromCharCode(97 + (key % 26)));
}
