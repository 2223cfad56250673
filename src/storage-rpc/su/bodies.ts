/** Decoders give undefined for what no peer of this version sends. */

import type { RemoteBufferDescriptor } from '../link/remote-buffer-descriptor.js';

export interface SuLimits {
  readonly smallBytesMax: number;
  readonly slotBytes: number;
  readonly slots: number;
  readonly chunkBytes: number;
}
const LIMITS_BYTES = 16;

export function encodeLimits(limits: SuLimits): Buffer {
  const out = Buffer.alloc(LIMITS_BYTES);
  out.writeUInt32LE(limits.smallBytesMax, 0);
  out.writeUInt32LE(limits.slotBytes, 4);
  out.writeUInt32LE(limits.slots, 8);
  out.writeUInt32LE(limits.chunkBytes, 12);
  return out;
}

export function decodeLimits(body: Buffer): SuLimits | undefined {
  if (body.length !== LIMITS_BYTES) return undefined;
  const limits = {
    smallBytesMax: body.readUInt32LE(0),
    slotBytes: body.readUInt32LE(4),
    slots: body.readUInt32LE(8),
    chunkBytes: body.readUInt32LE(12),
  };
  return Object.values(limits).every((value) => value > 0) ? limits : undefined;
}

/** In SLOTS it holds all slots, consecutively. */
const PLACE_BYTES = 16;

export function encodeRemoteBuffer({ addr, rkey, length }: RemoteBufferDescriptor): Buffer {
  const out = Buffer.alloc(PLACE_BYTES);
  out.writeBigUInt64LE(addr, 0);
  out.writeUInt32LE(rkey, 8);
  out.writeUInt32LE(length, 12);
  return out;
}

/** Reads {@link encodeRemoteBuffer}. */
export function decodeRemoteBuffer(body: Buffer): RemoteBufferDescriptor | undefined {
  if (body.length !== PLACE_BYTES) return undefined;
  return { addr: body.readBigUInt64LE(0), rkey: body.readUInt32LE(8), length: body.readUInt32LE(12) };
}

export type ReadStatus = 'ok' | 'crc_mismatch';
const READ_STATUSES: readonly ReadStatus[] = ['ok', 'crc_mismatch'];

export function encodeReadStatus(status: ReadStatus): Buffer {
  return Buffer.from([READ_STATUSES.indexOf(status)]);
}

export function decodeReadStatus(body: Buffer): ReadStatus | undefined {
  return body.length === 1 ? READ_STATUSES[body[0]] : undefined;
}

export const ABORT_REASONS = ['closed', 'protocol', 'crc', 'no_buffers', 'silent'] as const;
export type AbortReason = (typeof ABORT_REASONS)[number];
const TEXT_BYTES_MAX = 200;

export function encodeAbort(reason: AbortReason, text: string): Buffer {
  const words = Buffer.from(text).subarray(0, TEXT_BYTES_MAX);
  const out = Buffer.alloc(2 + words.length);
  out.writeUInt16LE(ABORT_REASONS.indexOf(reason), 0);
  words.copy(out, 2);
  return out;
}

/** Undefined when it is cut short; unknown reasons become `protocol`. */
export function decodeAbort(body: Buffer): { readonly reason: AbortReason; readonly text: string } | undefined {
  if (body.length < 2) return undefined;
  return { reason: ABORT_REASONS[body.readUInt16LE(0)] ?? 'protocol', text: body.toString('utf8', 2) };
}
