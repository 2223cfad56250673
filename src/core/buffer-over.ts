/** Memory as programs get it: a `Buffer`. */

import { constants } from 'node:buffer';

export const BUFFER_BYTES_MAX = constants.MAX_LENGTH;

export function bufferOver(memory: ArrayBufferLike, offset?: number, length?: number): Buffer {
  return Buffer.from(memory as ArrayBuffer, offset, length);
}
