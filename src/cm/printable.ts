/** Makes a peer's text safe for an error message: bounded, without control characters. */

const LENGTH_MAX = 200;

export function printable(text: string): string {
  const visible = text.replace(/\p{C}/gu, '\ufffd'); // Control, format, unassigned: nothing that has a shape.
  return visible.length <= LENGTH_MAX ? visible : `${visible.slice(0, LENGTH_MAX)}...`;
}
