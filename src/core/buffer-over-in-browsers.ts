/** Memory as programs get it: a `Uint8Array`, as browsers have no `Buffer`. */

export const BUFFER_BYTES_MAX = 2 ** 31;

export function bufferOver(memory: ArrayBufferLike, offset?: number, length?: number): Uint8Array {
  return new Uint8Array(memory, offset, length);
}
