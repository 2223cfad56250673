/** Records ArrayBuffers over shared bytes, because unlike a SharedArrayBuffer they do not show it. */

const shown = new WeakMap<ArrayBufferLike, SharedArrayBuffer | undefined>();

/** `view` shows the bytes of `memory`, which therefore lives as long. */
export function rememberShown(view: ArrayBufferLike, memory: SharedArrayBuffer): void {
  shown.set(view, memory);
}

/** Other processes may have mapped these bytes. */
export function markShared(view: ArrayBufferLike): void {
  shown.set(view, undefined);
}

export function isShared(buffer: ArrayBufferLike): boolean {
  return !(buffer instanceof ArrayBuffer) || shown.has(buffer);
}
