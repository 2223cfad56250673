/**
 * Frames of the RPC: one message each, a header of 32 bytes, little-endian, and perhaps a body. docs/rpc.md has the protocol.
 *
 *     kind 1   version 1   flags 1   zero 1   call 4   a 4   b 4   length 4   rkey 4   addr 8
 */

import { RoceError } from 'rocev2/internal/core';

/** The first frame of each side. `a`: most concurrent calls, `b`: most unread items per stream, `length`: longest body in bytes. */
export const HELLO = 1;
/** A call. `a`: deadline in milliseconds, or {@link NO_DEADLINE}. Body: name and input. */
export const CALL = 2;
/** The method has completed. Body: its output; none for a stream of outputs. */
export const RESULT = 3;
/** The method has failed. Body: code and message. */
export const ERROR = 4;
/** One item of a stream, from either side. */
export const ITEM = 5;
/** The caller's stream has ended. */
export const END = 6;
/** `a` items were consumed. */
export const CREDIT = 7;
/** The caller has given up. The server still answers with RESULT or ERROR. */
export const CANCEL = 8;
/** The receiver has read body number `a`: the sender may use its memory again. */
export const RELEASE = 9;

/** Flag: the receiver reads the body from the sender's memory; `b` is its number. */
export const BULK = 1;
/** `a` of a call without a deadline. */
export const NO_DEADLINE = 0xffff_ffff;
/** Size of the header in bytes. */
export const HEADER_BYTES = 32;
const VERSION = 1;

/** A frame's header. */
export interface Frame {
  /** What the frame carries: {@link CALL}, {@link RESULT} or one of the other numbers above. */
  readonly kind: number;
  /** {@link BULK} or 0. */
  readonly flags: number;
  /** Number of the call, chosen by the caller; 0 for HELLO and RELEASE. */
  readonly call: number;
  /** Depends on the kind. */
  readonly a: number;
  /** Depends on the kind, or the number of a bulk body. */
  readonly b: number;
  /** Bytes of the body. */
  readonly length: number;
  /** Of a bulk body. */
  readonly rkey: number;
  /** Of a bulk body. */
  readonly addr: bigint;
}

/** Writes the header of a frame; omitted fields are 0. */
export function writeFrame(out: Buffer, frame: Partial<Frame>): void {
  out[0] = frame.kind ?? 0;
  out[1] = VERSION;
  out[2] = frame.flags ?? 0;
  out[3] = 0;
  out.writeUInt32LE(frame.call ?? 0, 4);
  out.writeUInt32LE(frame.a ?? 0, 8);
  out.writeUInt32LE(frame.b ?? 0, 12);
  out.writeUInt32LE(frame.length ?? 0, 16);
  out.writeUInt32LE(frame.rkey ?? 0, 20);
  out.writeBigUInt64LE(frame.addr ?? 0n, 24);
}

/** Bytes of the body that follows a header, for who reads both from a stream. Throws ERR_ROCE_MISMATCH if it is no header, or says more than `max`. */
export function bodyBytesIn(header: Buffer, max: number): number {
  if (!isHeader(header)) throw notAFrame();
  const bytes = carriedBytes({ kind: header[0], flags: header[2], length: header.readUInt32LE(16) });
  if (bytes > max) throw broken(`it sent a body of ${bytes} bytes, which is too long`);
  return bytes;
}

function isHeader(message: Buffer): boolean {
  return message.length >= HEADER_BYTES && message[1] === VERSION && message[2] <= BULK && message[3] === 0;
}

function notAFrame(): RoceError {
  return broken('it sent a message that is not a frame of version 1');
}

function carriedBytes({ kind, flags, length }: Pick<Frame, 'kind' | 'flags' | 'length'>): number {
  return flags === BULK || kind === HELLO ? 0 : length;
}

/** The header of a message. Throws ERR_ROCE_MISMATCH if the message is not a frame. */
export function readFrame(message: Buffer): Frame {
  if (!isHeader(message)) throw notAFrame();
  const frame = {
    kind: message[0],
    flags: message[2],
    call: message.readUInt32LE(4),
    a: message.readUInt32LE(8),
    b: message.readUInt32LE(12),
    length: message.readUInt32LE(16),
    rkey: message.readUInt32LE(20),
    addr: message.readBigUInt64LE(24),
  };
  if (frame.kind < HELLO || frame.kind > RELEASE) throw broken(`it sent a frame of unknown kind ${frame.kind}`);
  const inline = message.length - HEADER_BYTES;
  const carries = carriedBytes(frame);
  if (inline !== carries) throw broken(`it sent ${inline} bytes, but the header says ${carries}`);
  return frame;
}

/** The peer breaks the protocol. */
export function broken(what: string): RoceError {
  return new RoceError(
    'ERR_ROCE_MISMATCH',
    `the peer does not speak rocev2/rpc: ${what}`,
    'one side must call serveRpc, the other connectRpc',
  );
}
