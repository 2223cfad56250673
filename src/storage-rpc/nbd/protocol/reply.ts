/** Replies of the transmission phase: a list of pieces, so that READ data is not copied after its header. */

import { writeU16, writeU32 } from '../../../core/bytes.js';
import { BLOCK_ERRNOS, type BlockErrno, type BlockExtent, EXTENTS_MAX } from '../../disk/block-device.js';
import { ALLOCATION_CONTEXT_ID } from './meta-context.js';
import * as wire from './wire.js';

/**
 * Not for READ once replies are structured. `echo` of a request with an extended header is longer, and has every reply
 * take that form.
 */
export function shortReply(echo: Uint8Array, errno?: BlockErrno): Uint8Array {
  if (isExtended(echo)) return errno === undefined ? chunk(wire.REPLY_TYPE_NONE, echo, 0) : errorReply(echo, errno, '');
  const bytes = Buffer.allocUnsafe(wire.SIMPLE_REPLY_BYTES);
  writeU32(bytes, 0, wire.SIMPLE_REPLY_MAGIC);
  writeU32(bytes, 4, errno === undefined ? 0 : BLOCK_ERRNOS[errno]);
  bytes.set(echo, 8);
  return bytes;
}

export function errorReply(echo: Uint8Array, errno: BlockErrno, message: string): Uint8Array {
  const text = new TextEncoder().encode(message).subarray(0, wire.STRING_BYTES_MAX);
  const bytes = chunk(wire.REPLY_TYPE_ERROR, echo, 6 + text.length);
  const at = headerBytes(echo);
  writeU32(bytes, at, BLOCK_ERRNOS[errno]);
  writeU16(bytes, at + 4, text.length);
  bytes.set(text, at + 6);
  return bytes;
}

/** The chunk of a structured reply with the data from `offset`; `isLast`: no other chunk follows. */
export function readReply(echo: Uint8Array, offset: number, data: Uint8Array, isLast = true): readonly Uint8Array[] {
  if (data.length === 0) return [chunk(wire.REPLY_TYPE_NONE, echo, 0)];
  const at = headerBytes(echo);
  if (isZero(data)) {
    const hole = chunk(wire.REPLY_TYPE_OFFSET_HOLE, echo, 12, 0, isLast);
    wire.writeU64(hole, at, offset);
    writeU32(hole, at + 8, data.length);
    return [hole];
  }
  return [readHeader(echo, offset, data.length, isLast), data];
}

/** The header of a chunk of data of `lengthBytes` from `offset`, which follow. */
export function readHeader(echo: Uint8Array, offset: number, lengthBytes: number, isLast = true): Uint8Array {
  const header = chunk(wire.REPLY_TYPE_OFFSET_DATA, echo, 8, lengthBytes, isLast);
  wire.writeU64(header, headerBytes(echo), offset);
  return header;
}

export function blockStatusReply(echo: Uint8Array, extents: readonly BlockExtent[]): Uint8Array {
  const shown = extents.slice(0, EXTENTS_MAX);
  const flagsOf = ({ hole, zero }: BlockExtent) => (hole ? wire.STATE_HOLE : 0) | (zero ? wire.STATE_ZERO : 0);
  const start = headerBytes(echo);
  if (isExtended(echo)) {
    const bytes = chunk(wire.REPLY_TYPE_BLOCK_STATUS_EXT, echo, 8 + 16 * shown.length);
    writeU32(bytes, start, ALLOCATION_CONTEXT_ID);
    writeU32(bytes, start + 4, shown.length);
    shown.forEach((extent, i) => {
      wire.writeU64(bytes, start + 8 + 16 * i, extent.lengthBytes);
      wire.writeU64(bytes, start + 16 + 16 * i, flagsOf(extent));
    });
    return bytes;
  }
  const bytes = chunk(wire.REPLY_TYPE_BLOCK_STATUS, echo, 4 + 8 * shown.length);
  writeU32(bytes, start, ALLOCATION_CONTEXT_ID);
  shown.forEach((extent, i) => {
    writeU32(bytes, start + 4 + 8 * i, extent.lengthBytes);
    writeU32(bytes, start + 8 + 8 * i, flagsOf(extent));
  });
  return bytes;
}

function chunk(type: number, echo: Uint8Array, room: number, more = 0, isLast = true): Uint8Array {
  const start = headerBytes(echo);
  // A piece of Node's pool: a small Uint8Array would be allocated separately on send.
  const bytes = Buffer.allocUnsafe(start + room).fill(0);
  writeU32(bytes, 0, isExtended(echo) ? wire.EXTENDED_REPLY_MAGIC : wire.STRUCTURED_REPLY_MAGIC);
  writeU16(bytes, 4, isLast ? wire.REPLY_FLAG_DONE : 0);
  writeU16(bytes, 6, type);
  bytes.set(echo, 8);
  writeU32(bytes, start - 4, room + more);
  return bytes;
}

function isExtended(echo: Uint8Array): boolean {
  return echo.length === wire.EXTENDED_ECHO_BYTES;
}

function headerBytes(echo: Uint8Array): number {
  return isExtended(echo) ? wire.EXTENDED_CHUNK_HEADER_BYTES : wire.CHUNK_HEADER_BYTES;
}

const ZEROS = new Uint8Array(64 * 1024);

/** The comparison ends at the first nonzero byte, almost always soon. */
function isZero(data: Uint8Array): boolean {
  for (let at = 0; at < data.length; at += ZEROS.length) {
    const length = Math.min(ZEROS.length, data.length - at);
    if (Buffer.compare(data.subarray(at, at + length), ZEROS.subarray(0, length)) !== 0) return false;
  }
  return true;
}
