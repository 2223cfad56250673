/**
 * Bytes for self-tests: the same in every run, and without a pattern that could hide an error.
 */

const made = new Map<number, Uint8Array<ArrayBuffer>>();

export function patternlessBytes(length: number): Uint8Array<ArrayBuffer> {
  let bytes = made.get(length);
  if (bytes === undefined) {
    bytes = new Uint8Array(new ArrayBuffer(length));
    made.set(length, bytes);
    let state = 1;
    for (let i = 0; i < length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator.
      bytes[i] = state >>> 24;
    }
  }
  return bytes;
}
