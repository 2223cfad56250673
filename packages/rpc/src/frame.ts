/**
 * Frames of the RPC: one message each, a header of 32 bytes, little-endian, and perhaps a body. docs/rpc.md has the
 * protocol.
 *
 *     kind 1   version 1   flags 1   zero 1   call 4   a 4   b 4   length 4   rkey 4   addr 8
 */

import { RoceError } from 'rocev2/internal/core';

/**
 * The first frame of each side. `a`: most concurrent calls, `b`: most unread items per stream, `length`: longest body
 * in bytes.
 */
export const HELLO = 1;
/** `a`: deadline in milliseconds, or {@link NO_DEADLINE}. */
export const CALL = 2;
export const RESULT = 3;
export const ERROR = 4;
export const ITEM = 5;
export const END = 6;
export const CREDIT = 7;
/** The server still answers with RESULT or ERROR. */
export const CANCEL = 8;
export const RELEASE = 9;

/** Flag: the receiver reads the body from the sender's memory; `b` is its number. */
export const BULK = 1;
/** `a` of a call without a deadline. */
export const NO_DEADLINE = 0xffff_ffff;
export const HEADER_BYTES = 32;
const VERSION = 1;

export interface Frame {
  readonly kind: number;
  readonly flags: number;
  /** Number of the call, chosen by the caller; 0 for HELLO and RELEASE. */
  readonly call: number;
  readonly a: number;
  readonly b: number;
  /** Bytes of the body. */
  readonly length: number;
  readonly rkey: number;
  readonly addr: bigint;
}

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

export function broken(what: string): RoceError {
  return new RoceError(
    'ERR_ROCE_MISMATCH',
    `the peer does not speak @rocev2/rpc: ${what}`,
    'one side must call serveRpc, the other connectRpc',
  );
}
