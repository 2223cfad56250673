/**
 * Extents of a disk as the body of a STATUS response: 8 bytes each, length 4, flags 4 (1 hole, 2 zero), little-endian.
 */

import type { BlockExtent } from '../disk/block-device.js';
import { RESPONSE_BODY_BYTES_MAX } from './response.js';

const EXTENT_BYTES = 8;
const HOLE = 1;
const ZERO = 2;
const LENGTH_MAX = 0xffff_f000;
const EXTENTS_MAX = RESPONSE_BODY_BYTES_MAX / EXTENT_BYTES;

/** As many of the extents as fit, from the first on; one that is too long for its field is cut and the last. */
export function encodeExtents(extents: readonly BlockExtent[]): Buffer {
  const tooLong = extents.findIndex(({ lengthBytes }) => lengthBytes > LENGTH_MAX);
  const fitting = extents.slice(0, tooLong < 0 ? EXTENTS_MAX : Math.min(EXTENTS_MAX, tooLong + 1));
  const out = Buffer.alloc(fitting.length * EXTENT_BYTES);
  fitting.forEach(({ lengthBytes, hole, zero }, i) => {
    out.writeUInt32LE(Math.min(lengthBytes, LENGTH_MAX), i * EXTENT_BYTES);
    out.writeUInt32LE((hole ? HOLE : 0) | (zero ? ZERO : 0), i * EXTENT_BYTES + 4);
  });
  return out;
}

export function decodeExtents(body: Uint8Array): BlockExtent[] {
  const bytes = Buffer.from(body);
  return Array.from({ length: Math.floor(bytes.length / EXTENT_BYTES) }, (_, i) => {
    const flags = bytes.readUInt32LE(i * EXTENT_BYTES + 4);
    return {
      lengthBytes: bytes.readUInt32LE(i * EXTENT_BYTES),
      hole: (flags & HOLE) !== 0,
      zero: (flags & ZERO) !== 0,
    };
  });
}
