/** What a peer sent, in an error text: bounded, and without characters that a terminal would obey. */

const LENGTH_MAX = 200;

/** The text as it may be printed. */
export function printable(text: string): string {
  const visible = text.replace(/\p{C}/gu, '\ufffd'); // Control, format, unassigned: nothing that has a shape.
  return visible.length <= LENGTH_MAX ? visible : `${visible.slice(0, LENGTH_MAX)}...`;
}
