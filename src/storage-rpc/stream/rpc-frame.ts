/**
 * Frames of the RPC layer on a byte stream: header of 32 bytes, little-endian, and a body.
 *
 *     0 magic 'SuRp' 4   4 version 1   5 kind 1   6 zero 2   8 id 8   16 deadlineMs 4   20 length 4   24 bodyCrc 4   28 hdrCrc 4
 *
 * The same frames travel over sU-RDMA and TCP. A body with a wrong CRC-32C is never delivered.
 */

import { crc32c } from '../../core/crc32c.js';
import type { Malformed, MessageFormat } from './message-reader.js';

const KINDS = ['request', 'response', 'error', 'cancel'] as const;
/** What a frame is. */
export type RpcKind = (typeof KINDS)[number];

/** Header of a frame. */
export interface RpcHeader {
  /** What it is. */
  readonly kind: RpcKind;
  /** Of the call, 64 bits, chosen by the caller. */
  readonly id: bigint;
  /**
   * Of requests: milliseconds the caller waits from sending on, or {@link RPC_NO_DEADLINE}. The callee does not begin what it cannot begin in
   * time, and tells a handler when the time is over.
   */
  readonly deadlineMs: number;
  /** Bytes of the body. */
  readonly length: number;
  /** CRC-32C of the body. */
  readonly bodyCrc: number;
}

/** Deadline of a request whose caller waits as long as it takes. */
export const RPC_NO_DEADLINE = 0xffff_ffff;
/** Longer bodies are refused by the sender and end the stream at the receiver. */
export const RPC_BODY_BYTES_MAX = 16 << 20;
const HEADER_BYTES = 32;
const MAGIC = 0x7052_7553;
const VERSION = 1;

/** Header and body as they travel. */
export function encodeRpc(header: Omit<RpcHeader, 'length' | 'bodyCrc'>, body: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  out.writeUInt32LE(MAGIC, 0);
  out[4] = VERSION;
  out[5] = KINDS.indexOf(header.kind);
  out.writeUInt16LE(0, 6);
  out.writeBigUInt64LE(header.id, 8);
  out.writeUInt32LE(header.deadlineMs, 16);
  out.writeUInt32LE(body.length, 20);
  out.writeUInt32LE(crc32c(body), 24);
  out.writeUInt32LE(crc32c(out.subarray(0, 28)), 28);
  out.set(body, HEADER_BYTES);
  return out;
}

function readHeader(bytes: Buffer): RpcHeader | Malformed {
  if (bytes.readUInt32LE(0) !== MAGIC) return 'bad_magic';
  if (bytes[4] !== VERSION) return 'bad_version';
  if (bytes.readUInt32LE(28) !== crc32c(bytes.subarray(0, 28))) return 'bad_header_crc';
  const kind = KINDS[bytes[5]];
  const length = bytes.readUInt32LE(20);
  if (kind === undefined) return 'bad_field';
  if (length > RPC_BODY_BYTES_MAX) return 'bad_length';
  return {
    kind,
    id: bytes.readBigUInt64LE(8),
    deadlineMs: bytes.readUInt32LE(16),
    length,
    bodyCrc: bytes.readUInt32LE(24),
  };
}

/** Frames for a {@link MessageReader}. */
export const RPC_FRAMES: MessageFormat<RpcHeader> = {
  headerBytes: HEADER_BYTES,
  read: readHeader,
  bodyBytes: ({ length }) => length,
};

/** The body is what its sender summed. */
export function isIntact({ bodyCrc }: RpcHeader, body: Uint8Array): boolean {
  return crc32c(body) === bodyCrc;
}
