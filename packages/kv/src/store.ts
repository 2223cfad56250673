/**
 * The owner's side of a store: the only writer of the region. Every change is synchronous; one that must wait for freed
 * memory returns when to retry. Time and randomness are passed in.
 */

import { NS_PER_MS, type RandomSource, RoceError, randomInt } from 'rocev2/internal/core';
import {
  BUCKET_SLOTS,
  bucketBytes,
  type Geometry,
  layoutOf,
  type RegionLayout,
  UNIT_BYTES,
  writeHeader,
} from './geometry.js';
import { keyPositionOf } from './key-hash.js';
import { decodeRecord, encodeRecord, type KvRecord } from './record.js';
import { SegmentLog } from './segment-log.js';
import { clearSlot, INLINE, readSlot, SLOT_HEAD_BYTES, type Slot, unitsOf, writeSlot } from './slot.js';

/**
 * What happens when there is no room for a new entry: `lru` removes entries that were not used lately, `none` refuses
 * the new one.
 */
export type Eviction = 'lru' | 'none';

/** Counters of a store. */
export interface KvCounters {
  /** Entries written. */
  sets: number;
  /** Entries removed by a DELETE. */
  deletes: number;
  /** Compare-and-sets that found another version. */
  conflicts: number;
  /** Entries removed to make room. */
  evictions: number;
  /** Entries removed because their time was over. */
  expirations: number;
  /** Records moved so that a segment became free. */
  moved_records: number;
  /** Writes that had to wait until freed memory could be used again. */
  waits: number;
}

export interface StoreChange {
  /** `expire` and `evict`: without a call of anybody. */
  readonly kind: 'set' | 'delete' | 'expire' | 'evict';
  readonly key: Buffer;
  readonly version: number;
}

export interface WriteTerms {
  readonly ttlMs?: number | undefined;
  readonly ifVersion?: number | undefined;
  readonly isFirstFit?: boolean;
}

/** What became of a write: done, another version was there (0: none), or memory is free at `retryNs`. */
export type Written =
  | { readonly outcome: 'done'; readonly version: number }
  | { readonly outcome: 'conflict'; readonly version: number }
  | { readonly outcome: 'wait'; readonly retryNs: number };

export interface StoreParts {
  readonly region: Buffer;
  readonly geometry: Geometry;
  readonly eviction?: Eviction;
  readonly nowNs: () => number;
  readonly random: RandomSource;
}

/** Share of the log that live records may take; more makes compaction costly. */
const LIVE_SHARE_MAX = 0.7;
const SPARE_SHARE = 8;
const EVICTION_SAMPLE = 8;
/** The first version is below this; as many follow. */
const FIRST_VERSION_MAX = 2 ** 52;

interface Found {
  readonly at: number;
  readonly slot: Slot;
  readonly record: KvRecord;
}

export class KvStore {
  readonly region: Buffer;
  readonly geometry: Geometry;
  readonly counters: KvCounters = {
    sets: 0,
    deletes: 0,
    conflicts: 0,
    evictions: 0,
    expirations: 0,
    moved_records: 0,
    waits: 0,
  };
  onChange: ((change: StoreChange) => void) | undefined;
  readonly #layout: RegionLayout;
  readonly #log: SegmentLog;
  readonly #logBytes: Buffer;
  readonly #eviction: Eviction;
  readonly #nowNs: () => number;
  readonly #random: RandomSource;
  /** For each slot, the turn in which it was used last. */
  readonly #usedAt: Uint32Array;
  /** Orders the stores of a record before that of its slot, where another thread reads. */
  readonly #fence = new Int32Array(new SharedArrayBuffer(4));
  #turn = 1;
  #version: number;
  #size = 0;
  #sweepAt = 0;

  constructor({ region, geometry, eviction = 'lru', nowNs, random }: StoreParts) {
    this.region = region;
    this.geometry = geometry;
    this.#layout = layoutOf(geometry);
    this.#logBytes = region.subarray(this.#layout.log, this.#layout.end);
    this.#log = new SegmentLog(this.#logBytes, geometry.segmentBytes, geometry.graceMs * NS_PER_MS);
    this.#eviction = eviction;
    this.#nowNs = nowNs;
    this.#random = random;
    this.#usedAt = new Uint32Array((geometry.buckets + 1) * BUCKET_SLOTS);
    // A restarted owner must not give a version again that an earlier life gave to another value.
    this.#version = randomInt(random, 1, FIRST_VERSION_MAX);
    writeHeader(region, geometry);
  }

  get size(): number {
    return this.#size;
  }

  get changes(): number {
    const { sets, deletes, evictions, expirations } = this.counters;
    return sets + deletes + evictions + expirations;
  }

  get liveBytes(): number {
    return this.#log.liveUnits * UNIT_BYTES;
  }

  /** Key and value are views of the region: valid until the next write. */
  get(key: Buffer): KvRecord | undefined {
    const found = this.#find(key);
    if (found === undefined || this.#isOver(found.record)) return undefined;
    this.#touch(found.at);
    return found.record;
  }

  touch(key: Buffer): void {
    const found = this.#find(key);
    if (found !== undefined) this.#touch(found.at);
  }

  set(key: Buffer, value: Buffer, { ttlMs, ifVersion, isFirstFit = false }: WriteTerms = {}): Written {
    this.#check(key, value);
    const nowNs = this.#nowNs();
    const old = this.#current(key);
    if (ifVersion !== undefined && ifVersion !== (old?.slot.version ?? 0)) {
      this.counters.conflicts++;
      return { outcome: 'conflict', version: old?.slot.version ?? 0 };
    }
    const version = this.#version + 1;
    const expiresMs = ttlMs === undefined ? 0 : Math.ceil(nowNs / NS_PER_MS + ttlMs);
    const record = encodeRecord({ version, expiresMs, key, value });
    const isInline = record.length <= this.geometry.slotBytes - SLOT_HEAD_BYTES;
    const units = isInline ? 0 : unitsOf(record.length);
    if (!isInline && !this.#makeRoom(units, key)) throw full('the log has no room');
    const place = isInline ? INLINE : this.#append(record, nowNs);
    if (place === undefined) {
      const retryNs = this.#log.nextReusableNs;
      if (retryNs === undefined) throw full('the log has no room');
      this.counters.waits++;
      return { outcome: 'wait', retryNs };
    }
    // Making room may have moved or removed what was there.
    const before = this.#find(key);
    const at = before?.at ?? this.#freeSlot(key, isFirstFit, () => this.#release({ place, units }, nowNs));
    if (isInline) this.region.set(record, at + SLOT_HEAD_BYTES);
    const { fingerprint } = keyPositionOf(key, this.geometry.buckets, this.geometry.seed);
    Atomics.add(this.#fence, 0, 1);
    writeSlot(this.region, at, { fingerprint, units, place, version });
    if (before === undefined) this.#size++;
    else this.#release(before.slot, nowNs);
    this.#version = version;
    this.#touch(at);
    this.counters.sets++;
    this.onChange?.({ kind: 'set', key, version });
    return { outcome: 'done', version };
  }

  delete(key: Buffer, ifVersion?: number): Written {
    const old = this.#current(key);
    const version = old?.slot.version ?? 0;
    if (ifVersion !== undefined && ifVersion !== version) {
      this.counters.conflicts++;
      return { outcome: 'conflict', version };
    }
    if (old !== undefined) {
      this.counters.deletes++;
      this.#remove(old, 'delete');
    }
    return { outcome: 'done', version };
  }

  sweep(buckets: number): void {
    const total = this.geometry.buckets + 1;
    for (let k = 0; k < Math.min(buckets, total); k++) {
      for (const found of this.#inBucket(this.#sweepAt)) this.#removeIfOver(found);
      this.#sweepAt = (this.#sweepAt + 1) % total;
    }
  }

  /**
   * An entry that exists from the first call to the last is given exactly once, because keys never move between
   * buckets.
   */
  scan(cursor: number, limit: number): { readonly records: KvRecord[]; readonly next: number | undefined } {
    const records: KvRecord[] = [];
    let bucket = cursor;
    for (; bucket <= this.geometry.buckets && records.length < limit; bucket++)
      for (const { record } of this.#inBucket(bucket)) if (!this.#isOver(record)) records.push(record);
    return { records, next: bucket > this.geometry.buckets ? undefined : bucket };
  }

  /** No writes during iteration. */
  *records(): Generator<KvRecord, void, undefined> {
    for (let bucket = 0; bucket <= this.geometry.buckets; bucket++)
      for (const { record } of this.#inBucket(bucket)) if (!this.#isOver(record)) yield record;
  }

  #check(key: Buffer, value: Buffer): void {
    const { keyBytesMax, valueBytesMax } = this.geometry;
    checkKeyBytes(key, keyBytesMax);
    if (value.length <= valueBytesMax) return;
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `a value of ${value.length} bytes is longer than the ${valueBytesMax} that the store takes`,
      'raise `valueBytesMax` of serveKv',
    );
  }

  #isOver({ expiresMs }: KvRecord): boolean {
    return expiresMs !== 0 && expiresMs * NS_PER_MS <= this.#nowNs();
  }

  #removeIfOver(found: Found): boolean {
    if (!this.#isOver(found.record)) return false;
    this.counters.expirations++;
    this.#remove(found, 'expire');
    return true;
  }

  #current(key: Buffer): Found | undefined {
    const found = this.#find(key);
    return found === undefined || this.#removeIfOver(found) ? undefined : found;
  }

  #find(key: Buffer): Found | undefined {
    const { bucket, fingerprint } = keyPositionOf(key, this.geometry.buckets, this.geometry.seed);
    for (const at of this.#slotsOf(bucket, 2)) {
      if (this.region.readUInt16LE(at) !== fingerprint) continue;
      const found = this.#at(at);
      if (found.record.key.equals(key)) return found;
    }
    return undefined;
  }

  #at(at: number): Found {
    const slot = readSlot(this.region, at);
    const bytes = isInlineSlot(slot)
      ? this.region.subarray(at + SLOT_HEAD_BYTES, at + this.geometry.slotBytes)
      : this.#logBytes.subarray(slot.place * UNIT_BYTES, (slot.place + slot.units) * UNIT_BYTES);
    return { at, slot, record: decodeRecord(bytes)! };
  }

  *#slotsOf(bucket: number, buckets: number): Generator<number, void, undefined> {
    const start = this.#layout.table + bucket * bucketBytes(this.geometry);
    for (let k = 0; k < buckets * BUCKET_SLOTS; k++) yield start + k * this.geometry.slotBytes;
  }

  *#inBucket(bucket: number): Generator<Found, void, undefined> {
    for (const at of this.#slotsOf(bucket, 1)) if (this.region.readUInt16LE(at) !== 0) yield this.#at(at);
  }

  #slotNumber(at: number): number {
    return (at - this.#layout.table) / this.geometry.slotBytes;
  }

  #touch(at: number): void {
    this.#turn = (this.#turn + 1) >>> 0;
    this.#usedAt[this.#slotNumber(at)] = this.#turn;
  }

  #idle(at: number): number {
    return (this.#turn - this.#usedAt[this.#slotNumber(at)]) >>> 0;
  }

  /** Calls `giveUp` before it throws. */
  #freeSlot(key: Buffer, isFirstFit: boolean, giveUp: () => void): number {
    const { bucket } = keyPositionOf(key, this.geometry.buckets, this.geometry.seed);
    const freeIn = (index: number) => [...this.#slotsOf(index, 1)].filter((at) => this.region.readUInt16LE(at) === 0);
    const [first, second] = [freeIn(bucket), freeIn(bucket + 1)];
    const isSecond = isFirstFit ? first.length === 0 : second.length > first.length;
    const free = isSecond ? second[0] : first[0];
    if (free !== undefined) return free;
    const all = [...this.#slotsOf(bucket, 2)].map((at) => this.#at(at));
    for (const found of all) if (this.#removeIfOver(found)) return found.at;
    if (this.#eviction === 'none') {
      giveUp();
      throw full('both buckets of the key are full');
    }
    const idlest = all.reduce((best, found) => (this.#idle(found.at) > this.#idle(best.at) ? found : best));
    this.#evict(idlest);
    return idlest.at;
  }

  #evict(found: Found): void {
    this.counters.evictions++;
    this.#remove(found, 'evict');
  }

  #remove({ at, slot, record }: Found, kind: StoreChange['kind']): void {
    const key = Buffer.from(record.key);
    clearSlot(this.region, at);
    this.#release(slot, this.#nowNs());
    this.#size--;
    this.onChange?.({ kind, key, version: slot.version });
  }

  #release({ place, units }: Pick<Slot, 'place' | 'units'>, nowNs: number): void {
    if (place !== INLINE) this.#log.release(place, units, nowNs);
  }

  /** The entry of `key`, which is written now, counts as gone. */
  #makeRoom(units: number, key: Buffer): boolean {
    const max = Math.floor(this.#log.units * LIVE_SHARE_MAX);
    const own = this.#find(key);
    const freed = own === undefined ? 0 : own.slot.units;
    while (this.#log.liveUnits - freed + units > max) {
      const victim = this.#idlestOfSample(own?.at);
      if (victim === undefined) return false;
      if (this.#removeIfOver(victim)) continue;
      if (this.#eviction === 'none') return false;
      this.#evict(victim);
    }
    return true;
  }

  #idlestOfSample(exceptAt: number | undefined): Found | undefined {
    const slots = this.#usedAt.length;
    let best: Found | undefined;
    let seen = 0;
    const start = randomInt(this.#random, 0, slots - 1);
    const stride = 2 * randomInt(this.#random, 0, 0xffff) + 1;
    // A stride through all slots finds an entry wherever it is, and is a sample where there are many.
    for (let k = 0; k < 2 * slots && seen < EVICTION_SAMPLE; k++) {
      const number = k < slots ? (start + k * stride) % slots : k - slots;
      const at = this.#layout.table + number * this.geometry.slotBytes;
      if (at === exceptAt || this.region.readUInt16LE(at) === 0) continue;
      const slot = readSlot(this.region, at);
      if (isInlineSlot(slot)) continue;
      seen++;
      const found = this.#at(at);
      if (this.#isOver(found.record)) return found;
      if (best === undefined || this.#idle(at) > this.#idle(best.at)) best = found;
    }
    return best;
  }

  #append(record: Buffer, nowNs: number): number | undefined {
    const units = unitsOf(record.length);
    const spareMin = Math.max(2, Math.floor(this.#log.segments / SPARE_SHARE));
    if (this.#log.spare < spareMin) this.#compact(units, nowNs);
    const place = this.#log.append(record, nowNs);
    if (place !== undefined) return place;
    this.#log.sealOpen(nowNs);
    return this.#compact(units, nowNs) ? this.#log.append(record, nowNs) : undefined;
  }

  /**
   * Empties the segment with the fewest live records, if that makes room for `units`. Otherwise it would take the last
   * free segment for nothing, and so it would with each segment that becomes free, indefinitely. Where none makes room,
   * at least two segments are free or will be: live records take LIVE_SHARE_MAX of the log, and no record more than an
   * eighth of a segment.
   */
  #compact(units: number, nowNs: number): boolean {
    const sparsest = this.#log.sparsest(units);
    if (sparsest === undefined) return false;
    for (const { place, bytes } of this.#log.records(sparsest)) {
      const { key, version } = decodeRecord(bytes)!;
      const found = this.#find(key);
      if (found === undefined || found.slot.place !== place || found.slot.version !== version) continue;
      const moved = this.#log.append(bytes, nowNs, true);
      if (moved === undefined) return false;
      Atomics.add(this.#fence, 0, 1);
      writeSlot(this.region, found.at, { ...found.slot, place: moved });
      this.#log.release(place, found.slot.units, nowNs);
      this.counters.moved_records++;
    }
    return true;
  }
}

export function checkKeyBytes(key: Buffer, keyBytesMax: number): void {
  if (key.length > 0 && key.length <= keyBytesMax) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a key of ${key.length} bytes`, `keys have 1 to ${keyBytesMax} bytes`);
}

function isInlineSlot({ place }: Slot): boolean {
  return place === INLINE;
}

function full(what: string): RoceError {
  return new RoceError(
    'ERR_ROCE_LIMIT',
    `the store is full: ${what}`,
    "delete entries, raise `bytes` or `entries` of serveKv, or let it evict: eviction: 'lru'",
  );
}
