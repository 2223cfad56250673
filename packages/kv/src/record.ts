/**
 * It never changes; a new value is a new record with a new version.
 *
 *     version 8   expires 8   key bytes 2   zero 2   value bytes 4   key   value   CRC-32C 4
 *
 * The checksum covers all that is before it. Reading across a change yields a record whose version or checksum is
 * wrong.
 */

import { crc32c } from 'rocev2/internal/core';
import { readVersion, writeVersion } from './slot.js';

/** Bytes of a record before its key: what {@link lengthOfRecord} needs. */
export const RECORD_HEAD_BYTES = 24;
const CRC_BYTES = 4;
export const RECORD_OVERHEAD_BYTES = RECORD_HEAD_BYTES + CRC_BYTES;

export interface KvRecord {
  readonly version: number;
  /** Time of the owner's clock in milliseconds from which on the entry does not exist; 0: never. */
  readonly expiresMs: number;
  readonly key: Buffer;
  readonly value: Buffer;
}

export function recordBytes(keyBytes: number, valueBytes: number): number {
  return RECORD_OVERHEAD_BYTES + keyBytes + valueBytes;
}

export function encodeRecord({ version, expiresMs, key, value }: KvRecord): Buffer {
  const bytes = Buffer.allocUnsafe(recordBytes(key.length, value.length));
  writeVersion(bytes, 0, version);
  writeVersion(bytes, 8, expiresMs);
  bytes.writeUInt16LE(key.length, 16);
  bytes.writeUInt16LE(0, 18);
  bytes.writeUInt32LE(value.length, 20);
  bytes.set(key, RECORD_HEAD_BYTES);
  bytes.set(value, RECORD_HEAD_BYTES + key.length);
  const end = bytes.length - CRC_BYTES;
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, end)), end);
  return bytes;
}

export function lengthOfRecord(bytes: Buffer): number {
  return recordBytes(bytes.readUInt16LE(16), bytes.readUInt32LE(20));
}

export function decodeRecord(bytes: Buffer): KvRecord | undefined {
  if (bytes.length < RECORD_OVERHEAD_BYTES) return undefined;
  const length = lengthOfRecord(bytes);
  if (length > bytes.length) return undefined;
  const end = length - CRC_BYTES;
  if (crc32c(bytes.subarray(0, end)) !== bytes.readUInt32LE(end)) return undefined;
  const valueAt = RECORD_HEAD_BYTES + bytes.readUInt16LE(16);
  return {
    version: readVersion(bytes, 0),
    expiresMs: readVersion(bytes, 8),
    key: bytes.subarray(RECORD_HEAD_BYTES, valueAt),
    value: bytes.subarray(valueAt, end),
  };
}
