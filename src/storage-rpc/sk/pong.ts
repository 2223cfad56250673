/**
 * Body of the answer to a PING, little-endian: 0 size of the disk 8, 8 mark of its opening 8, 16 checkpoint 4, 20 zero
 * 4. A client learns from it that the disk has grown, and which copies of it are older.
 */

import type { DiskOpening } from '../disk/disk-identity.js';
import type { DiskFacts } from './resume.js';

const BODY_BYTES = 24;

export function encodePong({ sizeBytes, openings: [present] = [] }: Pick<DiskFacts, 'sizeBytes' | 'openings'>): Buffer {
  const out = Buffer.alloc(BODY_BYTES);
  out.writeBigUInt64LE(BigInt(sizeBytes), 0);
  out.writeBigUInt64LE(present?.mark ?? 0n, 8);
  out.writeUInt32LE(present?.checkpoint ?? 0, 16);
  return out;
}

export function decodePong(
  body: Uint8Array,
): { readonly sizeBytes: number; readonly opening: DiskOpening } | undefined {
  if (body.length !== BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  const sizeBytes = Number(bytes.readBigUInt64LE(0));
  if (!Number.isSafeInteger(sizeBytes)) return undefined;
  return { sizeBytes, opening: { mark: bytes.readBigUInt64LE(8), checkpoint: bytes.readUInt32LE(16) } };
}
