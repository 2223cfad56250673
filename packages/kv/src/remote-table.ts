/**
 * A GET without the owner: READs of the two buckets of a key, and of the record if it does not stand there.
 *
 * Why the result is right. A version names one record for ever, and a record never changes. If the slot of the key had version v when it was read, and the
 * record that came has the key, version v and a right checksum, then it is the value that the key had at that moment. A key does not move to other
 * slots while it exists, so one READ of all its slots that does not show it passed a moment at which it did not exist. Everything else is read again.
 */

import { type Clock, NS_PER_MS } from 'rocev2/internal/core';
import { BUCKET_SLOTS, bucketBytes, type Geometry, type Places, placesOf, UNIT_BYTES } from './geometry.js';
import { hashKey } from './key-hash.js';
import { decodeRecord, type KvRecord } from './record.js';
import { INLINE, readSlot, SLOT_HEAD_BYTES, type Slot } from './slot.js';

/** Memory of an owner, as a reader reaches it. */
export interface RemoteMemory {
  /** Reads `length` bytes from `offset` of the region and resolves to what `use` makes of them. The bytes are valid until `use` returns. */
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

/** Counters at the beginning. */
export function noLookups(): LookupCounters {
  return { gets: 0, bucket_reads: 0, record_reads: 0, torn: 0, late: 0 };
}

/** What a lookup yields: the entry, or undefined if there is none; or `unclear`: it has met a change. */
export type Lookup = KvRecord | undefined | 'unclear';

/** The table of an owner, read from outside. */
export class RemoteTable {
  /** Those passed in. */
  readonly counters: LookupCounters;
  readonly #memory: RemoteMemory;
  readonly #geometry: Geometry;
  readonly #places: Places;
  readonly #clock: Clock;

  constructor(memory: RemoteMemory, geometry: Geometry, clock: Clock, counters: LookupCounters = noLookups()) {
    this.counters = counters;
    this.#memory = memory;
    this.#geometry = geometry;
    this.#places = placesOf(geometry);
    this.#clock = clock;
  }

  /** Looks once. Times of expiry are the owner's, and are not looked at. The value's bytes are the caller's own. */
  async lookUp(key: Buffer): Promise<Lookup> {
    const beginNs = this.#clock.nowNs();
    const { bucket, fingerprint } = hashKey(key, this.#geometry.buckets, this.#geometry.seed);
    this.counters.bucket_reads++;
    const bytesEach = bucketBytes(this.#geometry);
    const seen = await this.#memory.read(this.#places.table + bucket * bytesEach, 2 * bytesEach, (bytes) =>
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

  /** Looks at the slots with the fingerprint, and at records that stand in them. */
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
    const offset = this.#places.log + slot.place * UNIT_BYTES;
    const length = slot.units * UNIT_BYTES;
    // A slot that was met during its change can say anything; a READ outside the region would end the connection.
    if (length === 0 || length > this.#geometry.segmentBytes || offset + length > this.#places.end) return 'unclear';
    this.counters.record_reads++;
    return this.#memory.read(offset, length, (bytes) => recordOf(bytes, slot, key));
  }
}

/** What a READ of the buckets shows. */
interface Seen {
  found: KvRecord | undefined;
  /** Slots that may be the key's; their records stand in the log. */
  readonly inLog: Slot[];
  isTorn: boolean;
}

/** The record that the slot leads to, with a value of its own, if it is the key's; undefined if it is another key's. */
function recordOf(bytes: Buffer, { version }: Slot, key: Buffer): Lookup {
  const record = decodeRecord(bytes);
  if (record === undefined || record.version !== version) return 'unclear';
  return record.key.equals(key) ? { ...record, key, value: Buffer.from(record.value) } : undefined;
}
