/**
 * Frames of a byte stream over a connection: one message each, sent with immediate data. docs/stream-protocol.md
 * describes the protocol.
 *
 *     immediate: kind 8 | credits 24
 */

import { RoceError } from '../../core/errors.js';

export const OPEN = 1;
export const DATA = 2;
export const CREDIT = 3;
export const FIN = 4;
export const RESET = 5;

/** Only then may either side close the connection: the acknowledgement of a NIC that goes away may be lost. */
export const FIN_ACK = 6;

const MAGIC = 0x7453_6f52; // 'RoSt'
const VERSION = 1;
const OPEN_BYTES = 16;
const CREDITS_MAX = 0xff_ffff;
const REASON_BYTES_MAX = 60;

export interface Terms {
  readonly window: number;
  readonly frameBytes: number;
}

export function immediateOf(kind: number, credits = 0): number {
  return ((kind << 24) | credits) >>> 0;
}

export function readImmediate(immediate: number | undefined): { readonly kind: number; readonly credits: number } {
  if (immediate === undefined) throw malformed('it sent a message that is not a frame');
  return { kind: immediate >>> 24, credits: immediate & CREDITS_MAX };
}

export function encodeTerms({ window, frameBytes }: Terms): Buffer {
  const body = Buffer.alloc(OPEN_BYTES);
  body.writeUInt32LE(MAGIC, 0);
  body[4] = VERSION;
  body.writeUInt32LE(window, 8);
  body.writeUInt32LE(frameBytes, 12);
  return body;
}

export function decodeTerms(body: Buffer): Terms {
  if (body.length !== OPEN_BYTES || body.readUInt32LE(0) !== MAGIC) throw malformed('its first message is no OPEN');
  if (body[4] !== VERSION) throw malformed(`it speaks version ${body[4]}, and this side ${VERSION}`);
  const terms = { window: body.readUInt32LE(8), frameBytes: body.readUInt32LE(12) };
  const isPossible = terms.window >= 1 && terms.window <= CREDITS_MAX && terms.frameBytes >= 64;
  if (!isPossible) throw malformed(`it takes ${terms.window} frames of ${terms.frameBytes} bytes`);
  return terms;
}

export function encodeReason(reason: string): Buffer {
  const bytes = Buffer.from(reason);
  let end = Math.min(bytes.length, REASON_BYTES_MAX);
  while (end < bytes.length && end > 0 && (bytes[end] & 0xc0) === 0x80) end--; // Not in the middle of a character.
  return bytes.subarray(0, end);
}

export function malformed(what: string): RoceError {
  return new RoceError(
    'ERR_ROCE_MISMATCH',
    `the peer does not speak the stream protocol: ${what}`,
    'both ends of the connection must call stream() or webStreams()',
  );
}
