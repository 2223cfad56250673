/**
 * Frames of the RPC: one message each, a header of 32 bytes, little-endian, and perhaps a body. docs/rpc.md has the protocol.
 *
 *     kind 1   version 1   flags 1   zero 1   call 4   a 4   b 4   length 4   rkey 4   addr 8
 */

import { RoceError } from '../core/errors.js';

/** The first frame of each side. `a`: calls at a time, `b`: items a stream, `length`: bytes of the longest body it takes. */
export const HELLO = 1;
/** A call. `a`: milliseconds that the caller waits, or {@link NO_DEADLINE}. Body: name and input. */
export const CALL = 2;
/** The method has ended. Body: its output; none for a stream of outputs. */
export const RESULT = 3;
/** The method has failed. Body: code and message. */
export const ERROR = 4;
/** One item of a stream, of either side. */
export const ITEM = 5;
/** The caller's stream has ended. */
export const END = 6;
/** `a` items were consumed. */
export const CREDIT = 7;
/** The caller has given up. It is answered with RESULT or ERROR all the same. */
export const CANCEL = 8;
/** The body number `a` was read: its memory is the sender's again. */
export const RELEASE = 9;

/** Flag: the body is in the sender's memory, to be read there; `b` is its number. */
export const BULK = 1;
/** `a` of a call that waits as long as it takes. */
export const NO_DEADLINE = 0xffff_ffff;
/** Of every frame. */
export const HEADER_BYTES = 32;
const VERSION = 1;

/** A frame's header. */
export interface Frame {
  /** What it is. */
  readonly kind: number;
  /** {@link BULK} or 0. */
  readonly flags: number;
  /** The call it belongs to, chosen by the caller; 0 for HELLO and RELEASE. */
  readonly call: number;
  /** As the kind says. */
  readonly a: number;
  /** As the kind says, or the number of a bulk body. */
  readonly b: number;
  /** Bytes of the body. */
  readonly length: number;
  /** Of a bulk body. */
  readonly rkey: number;
  /** Of a bulk body. */
  readonly addr: bigint;
}

/** Writes the header of a frame; what is left out is 0. */
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

/** The header of a message. Throws ERR_ROCE_MISMATCH for what is no frame. */
export function readFrame(message: Buffer): Frame {
  if (message.length < HEADER_BYTES || message[1] !== VERSION || message[2] > BULK || message[3] !== 0) {
    throw broken('a message that is no frame of version 1');
  }
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
  if (frame.kind < HELLO || frame.kind > RELEASE) throw broken(`a frame of kind ${frame.kind}`);
  const inline = message.length - HEADER_BYTES;
  const carries = frame.flags === BULK || frame.kind === HELLO ? 0 : frame.length;
  if (inline !== carries) throw broken(`${inline} bytes where the header says ${carries}`);
  return frame;
}

/** The peer breaks the protocol. */
export function broken(what: string): RoceError {
  return new RoceError(
    'ERR_ROCE_MISMATCH',
    `the peer does not speak rocev2/rpc: ${what}`,
    'one end serves, the other calls',
  );
}
