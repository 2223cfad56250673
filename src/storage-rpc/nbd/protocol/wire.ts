/**
 * Numbers of the NBD protocol, newstyle, all big-endian (NetworkBlockDevice/nbd, doc/proto.md). Names follow that text without its
 * NBD_ prefix.
 */

import { readU32, writeU32 } from '../../../core/bytes.js';
import { U32 } from '../../../core/u64.js';

/** "NBDMAGIC", with which a server greets: 8 bytes as two halves. */
export const NBDMAGIC = [0x4e42444d, 0x41474943] as const;
/** "IHAVEOPT", before each option and in the greeting: 8 bytes as two halves. */
export const IHAVEOPT = [0x49484156, 0x454f5054] as const;
/** Before each reply to an option: 8 bytes as two halves. */
export const OPTION_REPLY_MAGIC = [0x0003e889, 0x045565a9] as const;
/** Before each request. */
export const REQUEST_MAGIC = 0x25609513;
/** Before each request with an extended header. */
export const EXTENDED_REQUEST_MAGIC = 0x21e41c71;
/** Before each simple reply. */
export const SIMPLE_REPLY_MAGIC = 0x67446698;
/** Before each chunk of a structured reply. */
export const STRUCTURED_REPLY_MAGIC = 0x668e33ef;
/** Before each chunk of a reply with an extended header. */
export const EXTENDED_REPLY_MAGIC = 0x6e8a278c;

/** Handshake flag, the same bit both ways: options that are not known are answered. */
export const FLAG_FIXED_NEWSTYLE = 1;
/** Handshake flag, the same bit both ways: no padding behind the reply to EXPORT_NAME. */
export const FLAG_NO_ZEROES = 2;

/** Option: choose an export, without an error reply. */
export const OPT_EXPORT_NAME = 1;
/** Option: the client ends the handshake. */
export const OPT_ABORT = 2;
/** Option: names of all exports. */
export const OPT_LIST = 3;
/** Option: TLS from here on. */
export const OPT_STARTTLS = 5;
/** Option: what an export is like. */
export const OPT_INFO = 6;
/** Option: as INFO, and begin. */
export const OPT_GO = 7;
/** Option: replies in chunks from now on. */
export const OPT_STRUCTURED_REPLY = 8;
/** Option: which contexts there are. */
export const OPT_LIST_META_CONTEXT = 9;
/** Option: which contexts BLOCK_STATUS tells of. */
export const OPT_SET_META_CONTEXT = 10;
/** Option: headers with lengths of 64 bits, and replies in chunks, from now on. */
export const OPT_EXTENDED_HEADERS = 11;

/** Reply to an option: done. */
export const REP_ACK = 1;
/** Reply to LIST: one export. */
export const REP_SERVER = 2;
/** Reply to INFO and GO: one `INFO_*`. */
export const REP_INFO = 3;
/** Reply to the options of contexts: one context. */
export const REP_META_CONTEXT = 4;
/** Types from here on are errors. */
export const REP_ERR_BIT = 0x80000000;
/** The option is not known. */
export const REP_ERR_UNSUP = 0x80000001;
/** The option makes no sense. */
export const REP_ERR_INVALID = 0x80000003;
/** Only behind STARTTLS. */
export const REP_ERR_TLS_REQD = 0x80000005;
/** There is no such export. */
export const REP_ERR_UNKNOWN = 0x80000006;
/** The option is too long. */
export const REP_ERR_TOO_BIG = 0x80000009;
/** Extended headers were agreed on, or would have to be. */
export const REP_ERR_EXT_HEADER_REQD = 0x8000000a;

/** Size and transmission flags. */
export const INFO_EXPORT = 0;
/** The export's name. */
export const INFO_NAME = 1;
/** Text about the export, for people. */
export const INFO_DESCRIPTION = 2;
/** Smallest and preferred unit of requests, largest payload. */
export const INFO_BLOCK_SIZE = 3;

/** Transmission flag: always set. */
export const HAS_FLAGS = 1;
/** Transmission flag: nothing can be written. */
export const READ_ONLY = 2;
/** Transmission flag: FLUSH is known. */
export const SEND_FLUSH = 4;
/** Transmission flag: writes can be made durable one by one. */
export const SEND_FUA = 8;
/** Transmission flag: TRIM is known. */
export const SEND_TRIM = 32;
/** Transmission flag: WRITE_ZEROES is known. */
export const SEND_WRITE_ZEROES = 64;
/** Transmission flag: a READ can ask for one chunk. */
export const SEND_DF = 128;
/** Transmission flag: a flush on one connection holds for all. */
export const CAN_MULTI_CONN = 256;
/** Transmission flag: CACHE is known. */
export const SEND_CACHE = 1024;
/** Transmission flag: WRITE_ZEROES can be asked to refuse rather than write zeros one by one. */
export const SEND_FAST_ZERO = 2048;
/** Transmission flag: BLOCK_STATUS may name the contexts it is about. */
export const BLOCK_STATUS_PAYLOAD = 4096;

/** Request: read a range. */
export const CMD_READ = 0;
/** Request: write the data that follow. */
export const CMD_WRITE = 1;
/** Request: the client goes; there is no reply. */
export const CMD_DISC = 2;
/** Request: make what was written durable. */
export const CMD_FLUSH = 3;
/** Request: the range is no longer needed. */
export const CMD_TRIM = 4;
/** Request: the range will be read soon. */
export const CMD_CACHE = 5;
/** Request: the range reads as zeros. */
export const CMD_WRITE_ZEROES = 6;
/** Request: where data, holes and zeros are. */
export const CMD_BLOCK_STATUS = 7;

/** Of writes: durable before the reply. */
export const CMD_FLAG_FUA = 1;
/** Of WRITE_ZEROES: the range keeps its space. */
export const CMD_FLAG_NO_HOLE = 2;
/** Of READ: one chunk of data. */
export const CMD_FLAG_DF = 4;
/** Of BLOCK_STATUS: one extent. */
export const CMD_FLAG_REQ_ONE = 8;
/** Of WRITE_ZEROES: only if that is faster than to write zeros. */
export const CMD_FLAG_FAST_ZERO = 16;
/** With extended headers: the length is that of the data that follow. */
export const CMD_FLAG_PAYLOAD_LEN = 32;

/** The last chunk of a reply. */
export const REPLY_FLAG_DONE = 1;
/** Chunk: nothing more to say. */
export const REPLY_TYPE_NONE = 0;
/** Chunk: data of a READ. */
export const REPLY_TYPE_OFFSET_DATA = 1;
/** Chunk: zeros of a READ, by their length. */
export const REPLY_TYPE_OFFSET_HOLE = 2;
/** Chunk: extents. */
export const REPLY_TYPE_BLOCK_STATUS = 5;
/** Chunk: extents with lengths of 64 bits. */
export const REPLY_TYPE_BLOCK_STATUS_EXT = 6;
/** Chunk: the request failed. */
export const REPLY_TYPE_ERROR = 0x8001;
/** Types from here on are errors. */
export const REPLY_TYPE_ERROR_BIT = 0x8000;

/** Flag of an extent: it takes no space. */
export const STATE_HOLE = 1;
/** Flag of an extent: it reads as zeros. */
export const STATE_ZERO = 2;
/** The context that tells of holes and zeros. */
export const BASE_ALLOCATION = 'base:allocation';

/** Header of a request. */
export const REQUEST_BYTES = 28;
/** Extended header of a request. */
export const EXTENDED_REQUEST_BYTES = 32;
/** Header of a simple reply. */
export const SIMPLE_REPLY_BYTES = 16;
/** What stands before the payload of a chunk. */
export const CHUNK_HEADER_BYTES = 20;
/** The same with extended headers. */
export const EXTENDED_CHUNK_HEADER_BYTES = 32;
/** What stands before the data of an option. */
export const OPTION_HEADER_BYTES = 16;
/** Header of a reply to an option. */
export const OPTION_REPLY_HEADER_BYTES = 20;
/** What names a request in its reply, */
export const COOKIE_BYTES = 8;
/** and with the offset behind it, as in extended headers. */
export const EXTENDED_ECHO_BYTES = 16;
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

/** Whether the 8 bytes at `offset` are this magic number. */
export function hasMagic(bytes: Uint8Array, offset: number, [high, low]: readonly [number, number]): boolean {
  return readU32(bytes, offset) === high && readU32(bytes, offset + 4) === low;
}

/** Writes 8 bytes at `offset`. */
export function writeMagic(bytes: Uint8Array, offset: number, [high, low]: readonly [number, number]): void {
  writeU32(bytes, offset, high);
  writeU32(bytes, offset + 4, low);
}
