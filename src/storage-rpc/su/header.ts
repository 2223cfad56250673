/**
 * The header of every sU-RDMA SEND, 40 bytes, little-endian.
 *
 *     0 magic 'SuRD' 4   4 version 1   5 type 1   6 flags 2   8 msgSeq 4   12 creditLimit 4   16 streamOff 8
 *    24 dataLen 4   28 dataCrc 4   32 slotLimit 4   36 hdrCrc 4 (CRC-32C of bytes 0..35)
 *
 * creditLimit and slotLimit are cumulative: how many SENDs, and how many slots, the peer may have used since the
 * connection began. Saying the same twice does no harm, unlike the increments of SMB Direct (MS-SMBD 2.2.3).
 */

import { crc32c } from '../../core/crc32c.js';
import type { Malformed } from '../stream/message-reader.js';

export const SU_TYPES = {
  HELLO: 1,
  HELLO_ACK: 2,
  SLOTS: 3,
  DATA: 4,
  WRITE_DONE: 5,
  READ_REQ: 6,
  READ_DONE: 7,
  CREDIT: 8,
  PING: 9,
  PONG: 10,
  DRAIN: 11,
  DRAIN_ACK: 12,
  ABORT: 13,
} as const;
export type SuType = keyof typeof SU_TYPES;
const TYPE_NAMES = Object.fromEntries(Object.entries(SU_TYPES).map(([name, code]) => [code, name as SuType]));

export const SU_MORE = 2;
const FLAGS_KNOWN = SU_MORE;

export const SU_HEADER_BYTES = 40;
const MAGIC = 0x4452_7553;
const VERSION = 1;

export interface SuHeader {
  readonly type: SuType;
  readonly flags: number;
  readonly msgSeq: number;
  readonly creditLimit: number;
  /** Where the data belongs in the stream, below 2^53. */
  readonly streamOff: number;
  /** Bytes of data. */
  readonly dataLen: number;
  readonly dataCrc: number;
  readonly slotLimit: number;
}

export function writeSuHeader(out: Buffer, header: SuHeader): void {
  out.writeUInt32LE(MAGIC, 0);
  out[4] = VERSION;
  out[5] = SU_TYPES[header.type];
  out.writeUInt16LE(header.flags, 6);
  out.writeUInt32LE(header.msgSeq, 8);
  out.writeUInt32LE(header.creditLimit, 12);
  out.writeBigUInt64LE(BigInt(header.streamOff), 16);
  out.writeUInt32LE(header.dataLen, 24);
  out.writeUInt32LE(header.dataCrc, 28);
  out.writeUInt32LE(header.slotLimit, 32);
  out.writeUInt32LE(crc32c(out.subarray(0, 36)), 36);
}

export function readSuHeader(bytes: Buffer): SuHeader | Malformed {
  if (bytes.length < SU_HEADER_BYTES) return 'too_short';
  if (bytes.readUInt32LE(0) !== MAGIC) return 'bad_magic';
  if (bytes[4] !== VERSION) return 'bad_version';
  if (bytes.readUInt32LE(36) !== crc32c(bytes.subarray(0, 36))) return 'bad_header_crc';
  const type = TYPE_NAMES[bytes[5]];
  const flags = bytes.readUInt16LE(6);
  const streamOff = bytes.readBigUInt64LE(16);
  if (type === undefined || (flags & ~FLAGS_KNOWN) !== 0 || streamOff > Number.MAX_SAFE_INTEGER) return 'bad_field';
  return {
    type,
    flags,
    msgSeq: bytes.readUInt32LE(8),
    creditLimit: bytes.readUInt32LE(12),
    streamOff: Number(streamOff),
    dataLen: bytes.readUInt32LE(24),
    dataCrc: bytes.readUInt32LE(28),
    slotLimit: bytes.readUInt32LE(32),
  };
}
