/** Which memory several threads reach. A SharedArrayBuffer says so itself; an ArrayBuffer over the same bytes is remembered here. */

/** Each view keeps what it shows alive. */
const shown = new WeakMap<ArrayBufferLike, SharedArrayBuffer>();

/** `view` shows the bytes of `memory`, which therefore lives as long. */
export function rememberShown(view: ArrayBufferLike, memory: SharedArrayBuffer): void {
  shown.set(view, memory);
}

/** Other threads may change the bytes at any time. */
export function isShared(buffer: ArrayBufferLike): boolean {
  return !(buffer instanceof ArrayBuffer) || shown.has(buffer);
}
