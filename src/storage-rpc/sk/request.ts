/**
 * The sK-RDMA request: a disk client's request in 64 bytes that are the same over RDMA and TCP. Little-endian.
 *
 *     0 magic 'SkRq' 4    4 version 1    5 op 1        6 flags 2     8 low half of the session id 8
 *    16 slot 2           18 zero 2      20 slotSeq 4  24 disk 4     28 offset on the disk 8          36 length 4
 *    40 descriptor: address 8, rkey 4, length 4       56 dataCrc 4  60 hdrCrc 4 (CRC-32C of bytes 0..59)
 *
 * Behind it: for a WRITE of more than one block of 4 KiB the CRC-32C of each block (dataCrc is then the CRC of this
 * list, else of the data itself), and the data itself if INLINE is set. Over TCP data is always inline and the
 * descriptor means nothing.
 */

import { checkWhole } from '../../core/arguments.js';
import { crc32c } from '../../core/crc32c.js';
import type { RemoteBufferDescriptor } from '../link/remote-buffer-descriptor.js';
import type { Malformed } from '../stream/message-reader.js';
import { CHECK_BLOCK_BYTES, checkListBytes } from './data-checks.js';

export const SK_OPS = {
  READ: 1,
  WRITE: 2,
  FLUSH: 3,
  TRIM: 4,
  ZERO: 5,
  PING: 6,
  RESUME: 7,
  STATUS: 8,
  CLOSE: 9,
} as const;
export type SkOp = keyof typeof SK_OPS;
const OP_NAMES = Object.fromEntries(Object.entries(SK_OPS).map(([name, code]) => [code, name as SkOp]));

export const SK_FUA = 1;
export const SK_NO_HOLE = 2;
export const SK_INLINE = 4;
const FLAGS_KNOWN = SK_FUA | SK_NO_HOLE | SK_INLINE;

export const SK_IO_BYTES_MAX = 1 << 20;
/**
 * A write that is alone is cut finer than it has to be: the server fetches, checks and stores one part while the next
 * is checksummed and copied at the client. A multiple of the block of a check.
 */
export const SK_WRITE_PART_BYTES = 256 << 10;
export const SK_SLOTS_MAX = 128;
/** Slot number of PING and RESUME, which are not I/O and have no slot. */
export const SK_NO_SLOT = 0xffff;
export const REQUEST_BYTES = 64;
/** Every receive has room for it: with 128 slots that is 1 MiB a connection. */
export const SK_INLINE_BYTES_MAX = 2 * CHECK_BLOCK_BYTES;
export const REQUEST_MESSAGE_BYTES_MAX =
  REQUEST_BYTES + Math.max(checkListBytes(SK_IO_BYTES_MAX), checkListBytes(SK_INLINE_BYTES_MAX) + SK_INLINE_BYTES_MAX);

export function checkInlineWriteBytesMax(bytes: number): void {
  checkWhole('inlineWriteBytesMax', bytes, 0, SK_INLINE_BYTES_MAX);
}

const MAGIC = 0x7152_6b53;
const VERSION = 1;
const U32 = 2 ** 32;
const OFFSET_HIGH_MAX = 0x1f_ffff;

export interface SkRequest {
  readonly op: SkOp;
  readonly flags: number;
  /** Low half of the session id, 64 bits. */
  readonly sessionLow: bigint;
  /** 0..127, or `SK_NO_SLOT`. */
  readonly slot: number;
  /** Number of the request in its slot, 32 bits. */
  readonly slotSeq: number;
  readonly disk: number;
  readonly offset: number;
  /** Up to 2^32 - 1 for TRIM, ZERO and STATUS, which move none. */
  readonly length: number;
  readonly descriptor: RemoteBufferDescriptor;
  /** CRC-32C of the data, or of the list of CRCs; 0 without data. */
  readonly dataCrc: number;
}

const WITH_DATA: ReadonlySet<SkOp> = new Set(['READ', 'WRITE', 'RESUME']);

/**
 * `flags`, `descriptor` and `dataCrc` replace those of the request: they depend on the transport, and copying a request
 * costs more than writing it.
 */
export function writeRequest(
  out: Buffer,
  request: Omit<SkRequest, 'descriptor' | 'dataCrc'>,
  descriptor: RemoteBufferDescriptor,
  dataCrc: number,
  flags = request.flags,
): void {
  out.writeUInt32LE(MAGIC, 0);
  out[4] = VERSION;
  out[5] = SK_OPS[request.op];
  out.writeUInt16LE(flags, 6);
  out.writeBigUInt64LE(request.sessionLow, 8);
  out.writeUInt16LE(request.slot, 16);
  out.writeUInt16LE(0, 18);
  out.writeUInt32LE(request.slotSeq, 20);
  out.writeUInt32LE(request.disk, 24);
  out.writeUInt32LE(request.offset % U32, 28);
  out.writeUInt32LE(Math.floor(request.offset / U32), 32);
  out.writeUInt32LE(request.length, 36);
  out.writeBigUInt64LE(descriptor.addr, 40);
  out.writeUInt32LE(descriptor.rkey, 48);
  out.writeUInt32LE(descriptor.length, 52);
  out.writeUInt32LE(dataCrc, 56);
  out.writeUInt32LE(crc32c(out.subarray(0, 60)), 60);
}

export function readRequest(bytes: Buffer): SkRequest | Malformed {
  if (bytes.length < REQUEST_BYTES) return 'too_short';
  if (bytes.readUInt32LE(0) !== MAGIC) return 'bad_magic';
  if (bytes[4] !== VERSION) return 'bad_version';
  if (bytes.readUInt32LE(60) !== crc32c(bytes.subarray(0, 60))) return 'bad_header_crc';
  const op = OP_NAMES[bytes[5]];
  const flags = bytes.readUInt16LE(6);
  const offsetHigh = bytes.readUInt32LE(32);
  if (op === undefined || (flags & ~FLAGS_KNOWN) !== 0 || offsetHigh > OFFSET_HIGH_MAX) return 'bad_field';
  const length = bytes.readUInt32LE(36);
  if (WITH_DATA.has(op) && length > SK_IO_BYTES_MAX) return 'bad_field';
  if ((flags & SK_INLINE) !== 0 && op !== 'WRITE' && op !== 'RESUME') return 'bad_field';
  const slot = bytes.readUInt16LE(16);
  const hasSlot = op !== 'PING' && op !== 'RESUME';
  if (hasSlot ? slot >= SK_SLOTS_MAX : slot !== SK_NO_SLOT) return 'bad_field';
  return {
    op,
    flags,
    sessionLow: bytes.readBigUInt64LE(8),
    slot,
    slotSeq: bytes.readUInt32LE(20),
    disk: bytes.readUInt32LE(24),
    offset: offsetHigh * U32 + bytes.readUInt32LE(28),
    length,
    descriptor: {
      addr: bytes.readBigUInt64LE(40),
      rkey: bytes.readUInt32LE(48),
      length: bytes.readUInt32LE(52),
    },
    dataCrc: bytes.readUInt32LE(56),
  };
}

export function requestListBytes({ op, length }: SkRequest): number {
  return op === 'WRITE' ? checkListBytes(length) : 0;
}

export function requestInlineBytes({ flags, length }: SkRequest): number {
  return (flags & SK_INLINE) === 0 ? 0 : length;
}
