import { checkWhole, RoceError } from 'rocev2/internal/core';
import { BUCKET_SLOTS, type Geometry, UNIT_BYTES } from './geometry.js';
import { recordBytes } from './record.js';
import { SLOT_HEAD_BYTES, unitsOf } from './slot.js';

/** How large a store is, and its longest keys and values. */
export interface StoreSizes {
  /** Bytes for values that are not in the table. 70 % can be in use at a time. Default 64 MiB. */
  readonly bytes?: number | undefined;
  /** Entries that the table is made for. Default 100,000. */
  readonly entries?: number | undefined;
  /** Longest key, 1 to 1024 bytes. Default 128. */
  readonly keyBytesMax?: number | undefined;
  /** Longest value, 0 to 1 MiB. Default 64 KiB. */
  readonly valueBytesMax?: number | undefined;
  /** Key and value of up to this many bytes together are in the table: a GET is one READ. 0 to 464. Default 136. */
  readonly inlineBytes?: number | undefined;
  /**
   * Milliseconds for which freed memory keeps its content, 1 to 60,000. Lookups that take longer begin again. Default
   * 500.
   */
  readonly graceMs?: number | undefined;
}

/** With 1.6 both buckets of some 50 of 100,000 keys are full before all are in; with 2.5 those of none. */
const SLOTS_PER_ENTRY = 2.5;
/** A segment holds at least this many of the longest records. */
const RECORDS_PER_SEGMENT = 8;
const SEGMENTS_WANTED = 64;
const SEGMENTS_MIN = 8;
const SEGMENTS_MAX = 0xffff;

export function geometryFor(sizes: StoreSizes, seed: number): Geometry {
  const { bytes = 64 << 20, entries = 100_000, keyBytesMax = 128, valueBytesMax = 64 << 10 } = sizes;
  const { inlineBytes = 136, graceMs = 500 } = sizes;
  checkWhole('bytes', bytes, 1, 2 ** 37);
  checkWhole('entries', entries, 1, 2 ** 30);
  checkWhole('keyBytesMax', keyBytesMax, 1, 1024);
  checkWhole('valueBytesMax', valueBytesMax, 0, 1 << 20);
  checkWhole('inlineBytes', inlineBytes, 0, 464);
  checkWhole('graceMs', graceMs, 1, 60_000);
  const longest = unitsOf(recordBytes(keyBytesMax, valueBytesMax)) * UNIT_BYTES;
  const wanted = Math.floor(bytes / SEGMENTS_WANTED / UNIT_BYTES) * UNIT_BYTES;
  const segmentBytes = Math.max(wanted, RECORDS_PER_SEGMENT * longest);
  const segments = Math.floor(bytes / segmentBytes);
  if (segments < SEGMENTS_MIN || segments > SEGMENTS_MAX) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `bytes is ${bytes}, which is too little for values of ${valueBytesMax} bytes`,
      `it must be at least ${SEGMENTS_MIN * RECORDS_PER_SEGMENT * longest}; or lower valueBytesMax`,
    );
  }
  const inlineRecord = inlineBytes === 0 ? 0 : recordBytes(0, inlineBytes);
  return {
    buckets: Math.ceil((entries * SLOTS_PER_ENTRY) / BUCKET_SLOTS),
    slotBytes: Math.ceil((SLOT_HEAD_BYTES + inlineRecord) / 8) * 8,
    segments,
    segmentBytes,
    keyBytesMax,
    valueBytesMax,
    graceMs,
    seed,
  };
}
