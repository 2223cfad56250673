/**
 * Numbers of the NBD protocol, newstyle, all big-endian (NetworkBlockDevice/nbd, doc/proto.md). Names follow that text without its
 * NBD_ prefix.
 */

import { readU32, writeU32 } from '../../../core/bytes.js';
import { U32 } from '../../../core/u64.js';

/** Magic numbers of 8 bytes, as their two halves. */
export const NBDMAGIC = [0x4e42444d, 0x41474943] as const;
export const IHAVEOPT = [0x49484156, 0x454f5054] as const;
export const OPTION_REPLY_MAGIC = [0x0003e889, 0x045565a9] as const;
export const REQUEST_MAGIC = 0x25609513;
export const SIMPLE_REPLY_MAGIC = 0x67446698;
export const STRUCTURED_REPLY_MAGIC = 0x668e33ef;

/** Handshake flags, the same bits both ways. */
export const FLAG_FIXED_NEWSTYLE = 1;
export const FLAG_NO_ZEROES = 2;

export const OPT_EXPORT_NAME = 1;
export const OPT_ABORT = 2;
export const OPT_LIST = 3;
export const OPT_INFO = 6;
export const OPT_GO = 7;
export const OPT_STRUCTURED_REPLY = 8;
export const OPT_LIST_META_CONTEXT = 9;
export const OPT_SET_META_CONTEXT = 10;

export const REP_ACK = 1;
export const REP_SERVER = 2;
export const REP_INFO = 3;
export const REP_META_CONTEXT = 4;
/** Types from here on are errors. */
export const REP_ERR_BIT = 0x80000000;
export const REP_ERR_UNSUP = 0x80000001;
export const REP_ERR_INVALID = 0x80000003;
export const REP_ERR_UNKNOWN = 0x80000006;
export const REP_ERR_TOO_BIG = 0x80000009;

export const INFO_EXPORT = 0;
export const INFO_NAME = 1;
export const INFO_DESCRIPTION = 2;
export const INFO_BLOCK_SIZE = 3;

/** Transmission flags: what an export can do. */
export const HAS_FLAGS = 1;
export const READ_ONLY = 2;
export const SEND_FLUSH = 4;
export const SEND_FUA = 8;
export const SEND_TRIM = 32;
export const SEND_WRITE_ZEROES = 64;
export const SEND_DF = 128;
export const CAN_MULTI_CONN = 256;

export const CMD_READ = 0;
export const CMD_WRITE = 1;
export const CMD_DISC = 2;
export const CMD_FLUSH = 3;
export const CMD_TRIM = 4;
export const CMD_WRITE_ZEROES = 6;
export const CMD_BLOCK_STATUS = 7;

export const CMD_FLAG_FUA = 1;
export const CMD_FLAG_NO_HOLE = 2;
export const CMD_FLAG_DF = 4;
export const CMD_FLAG_REQ_ONE = 8;

export const REPLY_FLAG_DONE = 1;
export const REPLY_TYPE_NONE = 0;
export const REPLY_TYPE_OFFSET_DATA = 1;
export const REPLY_TYPE_OFFSET_HOLE = 2;
export const REPLY_TYPE_BLOCK_STATUS = 5;
export const REPLY_TYPE_ERROR = 0x8001;
/** Types from here on are errors. */
export const REPLY_TYPE_ERROR_BIT = 0x8000;

/** Flags of extents in `base:allocation`. */
export const STATE_HOLE = 1;
export const STATE_ZERO = 2;
export const BASE_ALLOCATION = 'base:allocation';

export const REQUEST_BYTES = 28;
export const SIMPLE_REPLY_BYTES = 16;
export const CHUNK_HEADER_BYTES = 20;
export const OPTION_HEADER_BYTES = 16;
export const OPTION_REPLY_HEADER_BYTES = 20;
export const COOKIE_BYTES = 8;
/** Strings of the handshake. */
export const STRING_BYTES_MAX = 4096;
/** A client that was told nothing else may send or ask for so much in one request. */
export const PAYLOAD_BYTES_MAX = 32 << 20;

/** Exact below 2^53; above, near enough to be refused. */
export function readU64(bytes: Uint8Array, offset: number): number {
  return readU32(bytes, offset) * U32 + readU32(bytes, offset + 4);
}

/** `value` below 2^53. */
export function writeU64(bytes: Uint8Array, offset: number, value: number): void {
  writeU32(bytes, offset, Math.floor(value / U32));
  writeU32(bytes, offset + 4, value % U32);
}

export function hasMagic(bytes: Uint8Array, offset: number, [high, low]: readonly [number, number]): boolean {
  return readU32(bytes, offset) === high && readU32(bytes, offset + 4) === low;
}

export function writeMagic(bytes: Uint8Array, offset: number, [high, low]: readonly [number, number]): void {
  writeU32(bytes, offset, high);
  writeU32(bytes, offset + 4, low);
}
