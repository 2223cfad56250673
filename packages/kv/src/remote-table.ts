/**
 * A GET without the owner: READs of the key's two buckets, and of the record if it is not inline. Correctness: a
 * version names one record, which never changes; if the record has the key, the slot's version and a correct checksum,
 * it is the value the key had when the slot was read. A key keeps its slot while it exists, so one READ of all its
 * slots without it proves that it was absent at some moment. Everything else is read again.
 */

import { type Clock, NS_PER_MS } from 'rocev2/internal/core';
import { BUCKET_SLOTS, bucketBytes, type Geometry, layoutOf, type RegionLayout, UNIT_BYTES } from './geometry.js';
import { keyPositionOf } from './key-hash.js';
import { decodeRecord, type KvRecord } from './record.js';
import { INLINE, readSlot, SLOT_HEAD_BYTES, type Slot } from './slot.js';

export interface RemoteMemory {
  /** The bytes are valid until `use` returns. */
  read<T>(offset: number, length: number, use: (bytes: Buffer) => T): Promise<T>;
}

/** Counters of lookups. */
export interface LookupCounters {
  /** GETs that were begun. */
  gets: number;
  /** READs of buckets. */
  bucket_reads: number;
  /** READs of records. */
  record_reads: number;
  /** Lookups that met a change and began again. */
  torn: number;
  /** Lookups that took longer than the grace period and began again. */
  late: number;
}

export function noLookups(): LookupCounters {
  return { gets: 0, bucket_reads: 0, record_reads: 0, torn: 0, late: 0 };
}

export type Lookup = KvRecord | undefined | 'unclear';

export class RemoteTable {
  readonly counters: LookupCounters;
  readonly #memory: RemoteMemory;
  readonly #geometry: Geometry;
  readonly #layout: RegionLayout;
  readonly #clock: Clock;

  constructor(memory: RemoteMemory, geometry: Geometry, clock: Clock, counters: LookupCounters = noLookups()) {
    this.counters = counters;
    this.#memory = memory;
    this.#geometry = geometry;
    this.#layout = layoutOf(geometry);
    this.#clock = clock;
  }

  /** Times of expiry are the owner's, and are not looked at. The value's bytes are the caller's own. */
  async lookUp(key: Buffer): Promise<Lookup> {
    const beginNs = this.#clock.nowNs();
    const { bucket, fingerprint } = keyPositionOf(key, this.#geometry.buckets, this.#geometry.seed);
    this.counters.bucket_reads++;
    const bytesEach = bucketBytes(this.#geometry);
    const seen = await this.#memory.read(this.#layout.table + bucket * bytesEach, 2 * bytesEach, (bytes) =>
      this.#inBuckets(bytes, fingerprint, key),
    );
    let found = seen.found;
    let isTorn = seen.isTorn;
    for (let k = 0; k < seen.inLog.length && found === undefined; k++) {
      const inLog = await this.#inLog(seen.inLog[k], key);
      if (inLog === 'unclear') isTorn = true;
      else found = inLog;
    }
    if (found !== undefined) return this.#unlessLate(found, beginNs);
    if (!isTorn) return undefined;
    this.counters.torn++;
    return 'unclear';
  }

  /** After the grace period the memory of the record may have been in use for something else. */
  #unlessLate(record: KvRecord, beginNs: number): Lookup {
    if (this.#clock.nowNs() - beginNs <= this.#geometry.graceMs * NS_PER_MS) return record;
    this.counters.late++;
    return 'unclear';
  }

  #inBuckets(bytes: Buffer, fingerprint: number, key: Buffer): Seen {
    const { slotBytes } = this.#geometry;
    const seen: Seen = { found: undefined, inLog: [], isTorn: false };
    for (let at = 0; at < 2 * BUCKET_SLOTS * slotBytes && seen.found === undefined; at += slotBytes) {
      if (bytes.readUInt16LE(at) !== fingerprint) continue;
      const slot = readSlot(bytes, at);
      if (slot.place !== INLINE) {
        seen.inLog.push(slot);
        continue;
      }
      const found = recordOf(bytes.subarray(at + SLOT_HEAD_BYTES, at + slotBytes), slot, key);
      if (found === 'unclear') seen.isTorn = true;
      else seen.found = found;
    }
    return seen;
  }

  #inLog(slot: Slot, key: Buffer): Lookup | Promise<Lookup> {
    const offset = this.#layout.log + slot.place * UNIT_BYTES;
    const length = slot.units * UNIT_BYTES;
    // A slot that was met during its change can say anything; a READ outside the region would end the connection.
    if (length === 0 || length > this.#geometry.segmentBytes || offset + length > this.#layout.end) return 'unclear';
    this.counters.record_reads++;
    return this.#memory.read(offset, length, (bytes) => recordOf(bytes, slot, key));
  }
}

interface Seen {
  found: KvRecord | undefined;
  readonly inLog: Slot[];
  isTorn: boolean;
}

/** The record that the slot refers to, with a copied value, if it is the key's; undefined if it is another key's. */
function recordOf(bytes: Buffer, { version }: Slot, key: Buffer): Lookup {
  const record = decodeRecord(bytes);
  if (record === undefined || record.version !== version) return 'unclear';
  return record.key.equals(key) ? { ...record, key, value: Buffer.from(record.value) } : undefined;
}
