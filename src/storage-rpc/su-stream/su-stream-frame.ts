/**
 * Frames of an sU stream that outlives its connections: the same over RDMA and over TCP. A header of 40 bytes,
 * little-endian, and a body.
 *
 *     0 magic 'SuSt' 4   4 version 1   5 type 1   6 zero 2   8 offset 8   16 consumed 8   24 length 4
 *     28 dataCrc 4   32 zero 4   36 hdrCrc 4 (CRC-32C of bytes 0..35)
 *
 * Every frame contains how much of the peer's stream this side's program has consumed. The end of a stream counts as
 * one byte after its last, as in TCP (RFC 9293 §3.4): consuming it means that everything is consumed.
 *
 *     RESUME     offset: bytes received of the peer's stream; body: stream id 16, epoch 4, window 4, flags 4
 *                (1: no connection of it was answered yet)
 *     RESUMED    offset: bytes received; body: window 4
 *     REFUSED    the stream is not known
 *     DATA       offset: where in the stream; body: the bytes
 *     ACK        nothing but its header
 *     END        offset: bytes of the whole stream
 *     PING, PONG a PONG has the body of its PING
 *     ABORT      the stream is over; body: why
 */

import { crc32c } from '../../core/crc32c.js';
import type { Malformed, MessageFormat } from '../stream/message-reader.js';

export const STREAM_FRAMES = {
  RESUME: 1,
  RESUMED: 2,
  REFUSED: 3,
  DATA: 4,
  ACK: 5,
  END: 6,
  PING: 7,
  PONG: 8,
  ABORT: 9,
} as const;
export type StreamFrameType = keyof typeof STREAM_FRAMES;
const TYPE_NAMES = new Map(
  Object.entries(STREAM_FRAMES).map(([name, code]) => [code as number, name as StreamFrameType]),
);

export interface StreamFrame {
  readonly type: StreamFrameType;
  /** Depends on the type; below 2^53. */
  readonly offset: number;
  readonly consumed: number;
  /** Bytes of the body. */
  readonly length: number;
  readonly dataCrc: number;
}

const MAGIC = 0x7453_7553;
const VERSION = 1;
const HEADER_BYTES = 40;
const CRC_AT = HEADER_BYTES - 4;
/** Longest body: a frame is one chunk of an sU connection, and fits a slot. */
export const STREAM_BODY_BYTES_MAX = 64 * 1024 - HEADER_BYTES;

export function encodeFrame(frame: Pick<StreamFrame, 'type' | 'offset' | 'consumed'>, body: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  out.fill(0, 0, HEADER_BYTES);
  out.writeUInt32LE(MAGIC, 0);
  out[4] = VERSION;
  out[5] = STREAM_FRAMES[frame.type];
  out.writeBigUInt64LE(BigInt(frame.offset), 8);
  out.writeBigUInt64LE(BigInt(frame.consumed), 16);
  out.writeUInt32LE(body.length, 24);
  out.writeUInt32LE(crc32c(body), 28);
  out.writeUInt32LE(crc32c(out.subarray(0, CRC_AT)), CRC_AT);
  out.set(body, HEADER_BYTES);
  return out;
}

export const STREAM_FORMAT: MessageFormat<StreamFrame> = {
  headerBytes: HEADER_BYTES,
  read: readFrame,
  bodyBytes: ({ length }) => length,
};

function readFrame(bytes: Buffer): StreamFrame | Malformed {
  if (bytes.readUInt32LE(0) !== MAGIC) return 'bad_magic';
  if (bytes[4] !== VERSION) return 'bad_version';
  if (bytes.readUInt32LE(CRC_AT) !== crc32c(bytes.subarray(0, CRC_AT))) return 'bad_header_crc';
  const type = TYPE_NAMES.get(bytes[5]);
  const offset = Number(bytes.readBigUInt64LE(8));
  const consumed = Number(bytes.readBigUInt64LE(16));
  const length = bytes.readUInt32LE(24);
  if (type === undefined || !Number.isSafeInteger(offset) || !Number.isSafeInteger(consumed)) return 'bad_field';
  if (length > STREAM_BODY_BYTES_MAX) return 'bad_length';
  return { type, offset, consumed, length, dataCrc: bytes.readUInt32LE(28) };
}

export interface StreamResume {
  readonly id: Buffer;
  readonly epoch: number;
  readonly windowBytes: number;
  /** No connection of the stream has been answered yet: the server may begin it. */
  readonly mayBegin: boolean;
}

export const STREAM_ID_BYTES = 16;
const RESUME_BYTES = STREAM_ID_BYTES + 12;
const MAY_BEGIN = 1;

export function encodeResume({ id, epoch, windowBytes, mayBegin }: StreamResume): Buffer {
  const out = Buffer.alloc(RESUME_BYTES);
  out.set(id, 0);
  out.writeUInt32LE(epoch, STREAM_ID_BYTES);
  out.writeUInt32LE(windowBytes, STREAM_ID_BYTES + 4);
  out.writeUInt32LE(mayBegin ? MAY_BEGIN : 0, STREAM_ID_BYTES + 8);
  return out;
}

export function decodeResume(body: Buffer): StreamResume | undefined {
  if (body.length !== RESUME_BYTES) return undefined;
  const windowBytes = body.readUInt32LE(STREAM_ID_BYTES + 4);
  if (windowBytes === 0) return undefined;
  return {
    id: body.subarray(0, STREAM_ID_BYTES),
    epoch: body.readUInt32LE(STREAM_ID_BYTES),
    windowBytes,
    mayBegin: (body.readUInt32LE(STREAM_ID_BYTES + 8) & MAY_BEGIN) !== 0,
  };
}

export function encodeWindow(windowBytes: number): Buffer {
  const out = Buffer.alloc(4);
  out.writeUInt32LE(windowBytes, 0);
  return out;
}

export function decodeWindow(body: Buffer): number | undefined {
  const windowBytes = body.length === 4 ? body.readUInt32LE(0) : 0;
  return windowBytes === 0 ? undefined : windowBytes;
}
