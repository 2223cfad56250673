/**
 * One slot of the table: 16 bytes, and room for a short record.
 *
 *     fingerprint 2   units 2   place 4   version 8   [record]
 *
 * A READ can meet a change of the slot at any byte. The version makes that harmless: the record that the slot leads to
 * has the same one, or the reader looks again.
 */

import { UNIT_BYTES } from './geometry.js';

export const SLOT_HEAD_BYTES = 16;
export const INLINE = 0xffff_ffff;
const U32 = 0x1_0000_0000;

export interface Slot {
  /** 1 to 65,535, of the key; 0: the slot is free. */
  readonly fingerprint: number;
  readonly units: number;
  /** Where the record begins in the log, in units of 64 bytes, or {@link INLINE}. */
  readonly place: number;
  readonly version: number;
}

export function readVersion(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at + 4) * U32 + bytes.readUInt32LE(at);
}

export function writeVersion(bytes: Buffer, at: number, version: number): void {
  bytes.writeUInt32LE(version % U32, at);
  bytes.writeUInt32LE(Math.floor(version / U32), at + 4);
}

export function readSlot(bytes: Buffer, at: number): Slot {
  return {
    fingerprint: bytes.readUInt16LE(at),
    units: bytes.readUInt16LE(at + 2),
    place: bytes.readUInt32LE(at + 4),
    version: readVersion(bytes, at + 8),
  };
}

export function writeSlot(bytes: Buffer, at: number, { fingerprint, units, place, version }: Slot): void {
  writeVersion(bytes, at + 8, version);
  bytes.writeUInt32LE(place, at + 4);
  bytes.writeUInt16LE(units, at + 2);
  bytes.writeUInt16LE(fingerprint, at);
}

export function clearSlot(bytes: Buffer, at: number): void {
  bytes.fill(0, at, at + SLOT_HEAD_BYTES);
}

export function unitsOf(recordBytes: number): number {
  return Math.ceil(recordBytes / UNIT_BYTES);
}
