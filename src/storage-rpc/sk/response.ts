/**
 * The sK-RDMA response, 32 bytes, little-endian.
 *
 *     0 magic 'SkRs' 4   4 version 1   5 status 1   6 flags 2   8 slot 2   10 zero 2   12 slotSeq 4
 *    16 dataCrc 4   20 moved 4   24 serverTimeUs 4   28 hdrCrc 4 (CRC-32C of bytes 0..27)
 *
 * `moved` counts the bytes the response brings: data of a READ, written into the client's memory before this message
 * or, with INLINE set, following it. More than 4 KiB of it have a list of checks behind the header, as in requests.
 */

import { crc32c } from '../../core/crc32c.js';
import { BLOCK_ERRNOS, type BlockErrno } from '../disk/block-device.js';
import type { Malformed } from '../stream/message-reader.js';
import { checkListBytes } from './data-checks.js';
import { SK_INLINE, SK_IO_BYTES_MAX, SK_NO_SLOT, SK_SLOTS_MAX } from './request.js';

export const SK_STATUS = {
  OK: 0,
  ...BLOCK_ERRNOS,
  CRC_MISMATCH: 200,
  BAD_SEQ: 201,
  STALE_EPOCH: 202,
  NO_SESSION: 203,
  NO_DISK: 204,
  WRONG_DISK: 205,
  LEASED: 206,
  FENCED: 207,
  NOT_OWNER: 208,
} as const;
export type SkStatus = keyof typeof SK_STATUS;
const STATUS_NAMES = new Map<number, SkStatus>(
  Object.entries(SK_STATUS).map(([name, code]) => [code, name as SkStatus]),
);

export function errnoOfStatus(status: SkStatus): BlockErrno | undefined {
  return status in BLOCK_ERRNOS ? (status as BlockErrno) : undefined;
}

export const RESPONSE_BYTES = 32;
export const RESPONSE_BODY_BYTES_MAX = checkListBytes(SK_IO_BYTES_MAX);
export const RESPONSE_MESSAGE_BYTES_MAX = RESPONSE_BYTES + RESPONSE_BODY_BYTES_MAX;

const MAGIC = 0x7352_6b53;
const VERSION = 1;

export interface SkResponse {
  readonly status: SkStatus;
  readonly flags: number;
  readonly slot: number;
  readonly slotSeq: number;
  /** CRC-32C of the data, or of the list of CRCs; 0 without data. */
  readonly dataCrc: number;
  /** Bytes of data or body that the response brings. */
  readonly moved: number;
  readonly serverTimeUs: number;
}

function writeResponse(out: Buffer, response: SkResponse, flags: number): void {
  out.writeUInt32LE(MAGIC, 0);
  out[4] = VERSION;
  out[5] = SK_STATUS[response.status];
  out.writeUInt16LE(flags, 6);
  out.writeUInt16LE(response.slot, 8);
  out.writeUInt16LE(0, 10);
  out.writeUInt32LE(response.slotSeq, 12);
  out.writeUInt32LE(response.dataCrc, 16);
  out.writeUInt32LE(response.moved, 20);
  out.writeUInt32LE(response.serverTimeUs, 24);
  out.writeUInt32LE(crc32c(out.subarray(0, 28)), 28);
}

export function readResponse(bytes: Buffer): SkResponse | Malformed {
  if (bytes.length < RESPONSE_BYTES) return 'too_short';
  if (bytes.readUInt32LE(0) !== MAGIC) return 'bad_magic';
  if (bytes[4] !== VERSION) return 'bad_version';
  if (bytes.readUInt32LE(28) !== crc32c(bytes.subarray(0, 28))) return 'bad_header_crc';
  const status = STATUS_NAMES.get(bytes[5]);
  const flags = bytes.readUInt16LE(6);
  const moved = bytes.readUInt32LE(20);
  const slot = bytes.readUInt16LE(8);
  if (status === undefined || (flags & ~SK_INLINE) !== 0 || moved > SK_IO_BYTES_MAX) return 'bad_field';
  if (slot >= SK_SLOTS_MAX && slot !== SK_NO_SLOT) return 'bad_field';
  return {
    status,
    flags,
    slot,
    slotSeq: bytes.readUInt32LE(12),
    dataCrc: bytes.readUInt32LE(16),
    moved,
    serverTimeUs: bytes.readUInt32LE(24),
  };
}

export function responseListBytes({ moved }: SkResponse): number {
  return checkListBytes(moved);
}

export function responseInlineBytes({ flags, moved }: SkResponse): number {
  return (flags & SK_INLINE) === 0 ? 0 : moved;
}

export function encodeMessage(
  response: SkResponse,
  list: Uint8Array,
  inline: Uint8Array | undefined,
  flags = inline === undefined ? response.flags : response.flags | SK_INLINE,
): Buffer {
  const out = Buffer.allocUnsafe(RESPONSE_BYTES + list.length + (inline?.length ?? 0));
  writeResponse(out, response, flags);
  out.set(list, RESPONSE_BYTES);
  if (inline !== undefined) out.set(inline, RESPONSE_BYTES + list.length);
  return out;
}
