/**
 * The region of a store: a header that describes it, a table of slots, and the segments of a log. All numbers are
 * little-endian.
 *
 *     header 128 | buckets + 1 of 8 slots each | segments of records
 *
 * The header is written once, before the first reader comes. A key belongs to one bucket or to the next one, so that
 * one READ covers both.
 */

import { crc32c, RoceError } from 'rocev2/internal/core';

export const HEADER_BYTES = 128;
export const BUCKET_SLOTS = 8;
/** Records begin at multiples of this many bytes; slots count places and lengths in it. */
export const UNIT_BYTES = 64;

const MAGIC = 'rocev2kv';
const LAYOUT_VERSION = 1;
const CHECKED_BYTES = 64;

export interface Geometry {
  /** Buckets that a key can hash to, 1 to 2^32 - 1; the table has one more. */
  readonly buckets: number;
  /** Bytes of a slot, a multiple of 8: 16, and the longest record that is in the slot itself. */
  readonly slotBytes: number;
  /** Number of segments, 8 to 65,535. */
  readonly segments: number;
  readonly segmentBytes: number;
  /** Longest key in bytes, 1 to 65,535. */
  readonly keyBytesMax: number;
  /** Longest value in bytes. */
  readonly valueBytesMax: number;
  readonly graceMs: number;
  /** Seed of the hash of keys, 32 bits. */
  readonly seed: number;
}

export interface RegionLayout {
  readonly table: number;
  readonly log: number;
  /** Bytes of the region. */
  readonly end: number;
}

export function bucketBytes({ slotBytes }: Geometry): number {
  return BUCKET_SLOTS * slotBytes;
}

export function layoutOf(geometry: Geometry): RegionLayout {
  const table = HEADER_BYTES;
  const tableEnd = table + (geometry.buckets + 1) * bucketBytes(geometry);
  const log = Math.ceil(tableEnd / UNIT_BYTES) * UNIT_BYTES;
  return { table, log, end: log + geometry.segments * geometry.segmentBytes };
}

export function writeHeader(into: Buffer, geometry: Geometry): void {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC, 0, 'latin1');
  header.writeUInt32LE(LAYOUT_VERSION, 8);
  const { buckets, slotBytes, segments, segmentBytes, keyBytesMax, valueBytesMax, graceMs, seed } = geometry;
  for (const [k, value] of [
    buckets,
    slotBytes,
    segments,
    segmentBytes,
    keyBytesMax,
    valueBytesMax,
    graceMs,
    seed,
  ].entries())
    header.writeUInt32LE(value, 12 + 4 * k);
  header.writeUInt32LE(crc32c(header.subarray(0, CHECKED_BYTES)), CHECKED_BYTES);
  into.set(header);
}

export function readHeader(header: Buffer, regionBytes: number): Geometry {
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, MAGIC.length) !== MAGIC)
    throw foreign('the memory is not a store of @rocev2/kv', 'check host and port');
  const version = header.readUInt32LE(8);
  if (version !== LAYOUT_VERSION) {
    const text = `the store has layout ${version}, and this version of rocev2 reads layout ${LAYOUT_VERSION}`;
    throw foreign(text, 'use the same version of rocev2 on both sides');
  }
  if (crc32c(header.subarray(0, CHECKED_BYTES)) !== header.readUInt32LE(CHECKED_BYTES))
    throw foreign('the header of the store is damaged', 'restart its owner');
  const at = (k: number) => header.readUInt32LE(12 + 4 * k);
  const geometry: Geometry = {
    buckets: at(0),
    slotBytes: at(1),
    segments: at(2),
    segmentBytes: at(3),
    keyBytesMax: at(4),
    valueBytesMax: at(5),
    graceMs: at(6),
    seed: at(7),
  };
  if (layoutOf(geometry).end !== regionBytes || geometry.slotBytes % 8 !== 0 || geometry.slotBytes < 16)
    throw foreign(`the header does not describe a region of ${regionBytes} bytes`, 'restart the owner');
  return geometry;
}

function foreign(what: string, hint: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', what, hint);
}
