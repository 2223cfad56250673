/**
 * Where the parts of a ring are: a word that says whether its consumer waits, a word for each slot, the messages. A
 * message is its length (4 bytes), a CRC-32C (4), which shows whether it is complete, and its bytes.
 */

import { crc32c } from 'rocev2/internal/core';
import { WORD_BYTES } from './words.js';

export const MESSAGE_HEADER_BYTES = 8;

export interface RingSizes {
  readonly slots: number;
  readonly bytes: number;
}

function strideOf({ bytes }: RingSizes): number {
  return Math.ceil((MESSAGE_HEADER_BYTES + bytes) / WORD_BYTES) * WORD_BYTES;
}

export function ringWords(sizes: RingSizes): number {
  return 1 + sizes.slots + (sizes.slots * strideOf(sizes)) / WORD_BYTES;
}

export function wordAt(slot: number): number {
  return (1 + slot) * WORD_BYTES;
}

export function messageAt(sizes: RingSizes, slot: number): number {
  return wordAt(sizes.slots) + slot * strideOf(sizes);
}

export function encodeMessage(data: Uint8Array, ticket: bigint): Buffer {
  const message = Buffer.alloc(MESSAGE_HEADER_BYTES + data.length);
  message.set(data, MESSAGE_HEADER_BYTES);
  message.writeUInt32LE(data.length, 0);
  message.writeUInt32LE(crc32c(message.subarray(MESSAGE_HEADER_BYTES), seedOf(ticket)), 4);
  return message;
}

/**
 * A copy of the message of `ticket`, which begins at the beginning of `slot`; undefined where not all of it is there.
 */
export function decodeMessage(slot: Buffer, ticket: bigint): Buffer | undefined {
  const length = slot.readUInt32LE(0);
  if (length > slot.length - MESSAGE_HEADER_BYTES) return undefined;
  const data = Buffer.from(slot.subarray(MESSAGE_HEADER_BYTES, MESSAGE_HEADER_BYTES + length));
  return crc32c(data, seedOf(ticket)) === slot.readUInt32LE(4) ? data : undefined;
}

/** The message that was in the slot before must not pass for this one. */
function seedOf(ticket: bigint): number {
  return Number(BigInt.asUintN(32, ticket + 1n));
}
