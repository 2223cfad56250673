/**
 * Numbers of the NBD protocol, newstyle, big-endian (NetworkBlockDevice/nbd, doc/proto.md), without the NBD_ prefix.
 */

import { readU32, writeU32 } from '../../../core/bytes.js';
import { U32 } from '../../../core/u64.js';

/** "NBDMAGIC", with which a server greets: 8 bytes as two halves. */
export const NBDMAGIC = [0x4e42444d, 0x41474943] as const;
/** "IHAVEOPT", before each option and in the greeting: 8 bytes as two halves. */
export const IHAVEOPT = [0x49484156, 0x454f5054] as const;
/** Before each reply to an option: 8 bytes as two halves. */
export const OPTION_REPLY_MAGIC = [0x0003e889, 0x045565a9] as const;
export const REQUEST_MAGIC = 0x25609513;
export const EXTENDED_REQUEST_MAGIC = 0x21e41c71;
export const SIMPLE_REPLY_MAGIC = 0x67446698;
export const STRUCTURED_REPLY_MAGIC = 0x668e33ef;
export const EXTENDED_REPLY_MAGIC = 0x6e8a278c;

/** Unknown options are answered. */
export const FLAG_FIXED_NEWSTYLE = 1;
/** No padding after the reply to EXPORT_NAME. */
export const FLAG_NO_ZEROES = 2;

/** Option: choose an export, without an error reply. */
export const OPT_EXPORT_NAME = 1;
export const OPT_ABORT = 2;
export const OPT_LIST = 3;
export const OPT_STARTTLS = 5;
export const OPT_INFO = 6;
export const OPT_GO = 7;
export const OPT_STRUCTURED_REPLY = 8;
export const OPT_LIST_META_CONTEXT = 9;
export const OPT_SET_META_CONTEXT = 10;
/** Option: headers with lengths of 64 bits, and replies in chunks, from now on. */
export const OPT_EXTENDED_HEADERS = 11;

export const REP_ACK = 1;
export const REP_SERVER = 2;
export const REP_INFO = 3;
export const REP_META_CONTEXT = 4;
export const REP_ERR_BIT = 0x80000000;
export const REP_ERR_UNSUP = 0x80000001;
export const REP_ERR_INVALID = 0x80000003;
export const REP_ERR_TLS_REQD = 0x80000005;
export const REP_ERR_UNKNOWN = 0x80000006;
export const REP_ERR_TOO_BIG = 0x80000009;
export const REP_ERR_EXT_HEADER_REQD = 0x8000000a;

export const INFO_EXPORT = 0;
export const INFO_NAME = 1;
export const INFO_DESCRIPTION = 2;
export const INFO_BLOCK_SIZE = 3;

export const HAS_FLAGS = 1;
export const READ_ONLY = 2;
export const SEND_FLUSH = 4;
export const SEND_FUA = 8;
export const SEND_TRIM = 32;
export const SEND_WRITE_ZEROES = 64;
export const SEND_DF = 128;
/** Transmission flag: a flush on one connection holds for all. */
export const CAN_MULTI_CONN = 256;
export const SEND_CACHE = 1024;
/** Transmission flag: WRITE_ZEROES has an option to fail rather than write zeros one by one. */
export const SEND_FAST_ZERO = 2048;
export const BLOCK_STATUS_PAYLOAD = 4096;

export const CMD_READ = 0;
export const CMD_WRITE = 1;
export const CMD_DISC = 2;
export const CMD_FLUSH = 3;
export const CMD_TRIM = 4;
export const CMD_CACHE = 5;
export const CMD_WRITE_ZEROES = 6;
export const CMD_BLOCK_STATUS = 7;

export const CMD_FLAG_FUA = 1;
export const CMD_FLAG_NO_HOLE = 2;
export const CMD_FLAG_DF = 4;
export const CMD_FLAG_REQ_ONE = 8;
/** Of WRITE_ZEROES: only if that is faster than to write zeros. */
export const CMD_FLAG_FAST_ZERO = 16;
/** With extended headers: the length is that of the data that follow. */
export const CMD_FLAG_PAYLOAD_LEN = 32;

export const REPLY_FLAG_DONE = 1;
export const REPLY_TYPE_NONE = 0;
export const REPLY_TYPE_OFFSET_DATA = 1;
export const REPLY_TYPE_OFFSET_HOLE = 2;
export const REPLY_TYPE_BLOCK_STATUS = 5;
export const REPLY_TYPE_BLOCK_STATUS_EXT = 6;
export const REPLY_TYPE_ERROR = 0x8001;
export const REPLY_TYPE_ERROR_BIT = 0x8000;

export const STATE_HOLE = 1;
export const STATE_ZERO = 2;
export const BASE_ALLOCATION = 'base:allocation';

export const REQUEST_BYTES = 28;
export const EXTENDED_REQUEST_BYTES = 32;
export const SIMPLE_REPLY_BYTES = 16;
export const CHUNK_HEADER_BYTES = 20;
export const EXTENDED_CHUNK_HEADER_BYTES = 32;
export const OPTION_HEADER_BYTES = 16;
export const OPTION_REPLY_HEADER_BYTES = 20;
export const COOKIE_BYTES = 8;
export const EXTENDED_ECHO_BYTES = 16;
export const STRING_BYTES_MAX = 4096;
/** The limit of a client that negotiated none. */
export const PAYLOAD_BYTES_MAX = 32 << 20;

/** Exact below 2^53; above, near enough to be refused. */
export function readU64(bytes: Uint8Array, offset: number): number {
  return readU32(bytes, offset) * U32 + readU32(bytes, offset + 4);
}

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
