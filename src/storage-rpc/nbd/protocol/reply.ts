/** Replies of the transmission phase. A reply is a few pieces to send in order, so that the data of a READ is not copied behind its header. */

import { writeU16, writeU32 } from '../../../core/bytes.js';
import { BLOCK_ERRNOS, type BlockErrno, type BlockExtent, EXTENTS_MAX } from '../../disk/block-device.js';
import { ALLOCATION_CONTEXT_ID } from './meta-context.js';
import * as wire from './wire.js';

/** Success without data, or failure, in the form every client understands. Not for READ once replies are structured. */
export function simpleReply(cookie: Uint8Array, errno?: BlockErrno): Uint8Array {
  const bytes = new Uint8Array(wire.SIMPLE_REPLY_BYTES);
  writeU32(bytes, 0, wire.SIMPLE_REPLY_MAGIC);
  writeU32(bytes, 4, errno === undefined ? 0 : BLOCK_ERRNOS[errno]);
  bytes.set(cookie, 8);
  return bytes;
}

/** Failure, with words for people. */
export function errorReply(cookie: Uint8Array, errno: BlockErrno, message: string): Uint8Array {
  const text = new TextEncoder().encode(message).subarray(0, wire.STRING_BYTES_MAX);
  const bytes = chunk(wire.REPLY_TYPE_ERROR, cookie, 6 + text.length);
  writeU32(bytes, wire.CHUNK_HEADER_BYTES, BLOCK_ERRNOS[errno]);
  writeU16(bytes, wire.CHUNK_HEADER_BYTES + 4, text.length);
  bytes.set(text, wire.CHUNK_HEADER_BYTES + 6);
  return bytes;
}

/** The data of a READ as structured reply; a hole where it is all zeros. */
export function readReply(cookie: Uint8Array, offset: number, data: Uint8Array): readonly Uint8Array[] {
  if (data.length === 0) return [chunk(wire.REPLY_TYPE_NONE, cookie, 0)];
  if (isZero(data)) {
    const hole = chunk(wire.REPLY_TYPE_OFFSET_HOLE, cookie, 12);
    wire.writeU64(hole, wire.CHUNK_HEADER_BYTES, offset);
    writeU32(hole, wire.CHUNK_HEADER_BYTES + 8, data.length);
    return [hole];
  }
  const header = chunk(wire.REPLY_TYPE_OFFSET_DATA, cookie, 8, data.length);
  wire.writeU64(header, wire.CHUNK_HEADER_BYTES, offset);
  return [header, data];
}

/** The answer to BLOCK_STATUS, at least one extent, cut off at {@link EXTENTS_MAX}. */
export function blockStatusReply(cookie: Uint8Array, extents: readonly BlockExtent[]): Uint8Array {
  const shown = extents.slice(0, EXTENTS_MAX);
  const bytes = chunk(wire.REPLY_TYPE_BLOCK_STATUS, cookie, 4 + 8 * shown.length);
  writeU32(bytes, wire.CHUNK_HEADER_BYTES, ALLOCATION_CONTEXT_ID);
  shown.forEach(({ lengthBytes, hole, zero }, i) => {
    const at = wire.CHUNK_HEADER_BYTES + 4 + 8 * i;
    writeU32(bytes, at, lengthBytes);
    writeU32(bytes, at + 4, (hole ? wire.STATE_HOLE : 0) | (zero ? wire.STATE_ZERO : 0));
  });
  return bytes;
}

/** A chunk that is the whole reply, with `room` bytes behind its header; `more` are sent apart. */
function chunk(type: number, cookie: Uint8Array, room: number, more = 0): Uint8Array {
  const bytes = new Uint8Array(wire.CHUNK_HEADER_BYTES + room);
  writeU32(bytes, 0, wire.STRUCTURED_REPLY_MAGIC);
  writeU16(bytes, 4, wire.REPLY_FLAG_DONE);
  writeU16(bytes, 6, type);
  bytes.set(cookie, 8);
  writeU32(bytes, 16, room + more);
  return bytes;
}

const ZEROS = new Uint8Array(64 * 1024);

/** Data ends the comparison at its first byte that is not zero, almost always soon. */
function isZero(data: Uint8Array): boolean {
  for (let at = 0; at < data.length; at += ZEROS.length) {
    const length = Math.min(ZEROS.length, data.length - at);
    if (Buffer.compare(data.subarray(at, at + length), ZEROS.subarray(0, length)) !== 0) return false;
  }
  return true;
}
