/**
 * What a device lets peers of its memory domain map, in memory shared with them. The owner of the regions writes
 * grants; a requester reads them, and marks in the slot of the queue pair that it copies. So the owner can revoke a
 * grant and then wait until nobody copies:
 *
 *     requester: mark = region; is the grant still this one? copy; mark = nothing
 *     owner:     end the grant; wait while a mark names the region
 *
 * All of these are sequentially consistent atomics: either the requester sees that the grant has ended, or the owner
 * sees the mark. Each mark has one writer, the thread of the requester, which copies within one call. So the slot of a
 * closed queue pair is used again only after its requester has left it or has ended.
 *
 *     64 bytes        header: layout, number of changes
 *     256 x 64 bytes  regions: generation (odd: valid), rkey, pd, access, base, length, descriptor, offset, segment bytes
 *     1024 x 64 bytes queue pairs: QPN, state and access, pd, mark, requester, secret
 */

import { ACCESS_REMOTE_ATOMIC, ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE } from '../ring/enums.js';

const SLOT_WORDS = 16;
const REGIONS_MAX = 256;
const QUEUE_PAIRS_MAX = 1024;
const FIRST_REGION = SLOT_WORDS;
const FIRST_QUEUE_PAIR = FIRST_REGION + REGIONS_MAX * SLOT_WORDS;
/** Bytes of a table. */
export const GRANT_TABLE_BYTES: number = (FIRST_QUEUE_PAIR + QUEUE_PAIRS_MAX * SLOT_WORDS) * 4;

const LAYOUT = 0x526d_0001;
const WORD_LAYOUT = 0;
const WORD_CHANGES = 1;

const WORD_GENERATION = 0;
const WORD_RKEY = 1;
const WORD_REGION_PD = 2;
const WORD_ACCESS = 3;
const WORD_BASE_LOW = 4;
const WORD_BASE_HIGH = 5;
const WORD_FD = 6;
/** Numbers of 53 bits, low half first. */
const WORD_LENGTH = 8;
const WORD_OFFSET = 10;
const WORD_SEGMENT_BYTES = 12;

const WORD_QPN = 0;
const WORD_STATE = 1;
const WORD_QP_PD = 2;
const WORD_MARK = 3;
const WORD_PID = 4;
const WORD_STARTED = 5;
const WORD_SECRET = 7;

/** Bit of a queue pair's state: it executes requests. The bits below are what it allows. */
const EXECUTES = 1 << 8;
const REMOTE_ACCESS = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
const U32 = 2 ** 32;

/** A process: the PID alone may be used again. */
export interface ProcessName {
  readonly pid: number;
  /** When it started, in clock ticks since boot. */
  readonly started: number;
}

/** 64 random bits, which only the two ends know. */
export type SlotSecret = readonly [number, number];

export interface RegionGrant {
  readonly rkey: number;
  readonly pd: number;
  /** Flags of `Access`. */
  readonly access: number;
  readonly baseHigh: number;
  readonly baseLow: number;
  readonly lengthBytes: number;
  /** Descriptor of the owner that names the segment. */
  readonly fd: number;
  /** Of the first byte, in the segment. */
  readonly offsetBytes: number;
  readonly segmentBytes: number;
}

/** A grant as a requester found it. */
export interface FoundGrant extends RegionGrant {
  readonly region: number;
  readonly generation: number;
}

abstract class Table {
  readonly memory: ArrayBufferLike;
  protected readonly words: Int32Array;

  constructor(memory: ArrayBufferLike) {
    this.memory = memory;
    this.words = new Int32Array(memory, 0, GRANT_TABLE_BYTES / 4);
  }

  protected number(word: number): number {
    return (this.words[word + 1] >>> 0) * U32 + (this.words[word] >>> 0);
  }

  protected setNumber(word: number, value: number): void {
    this.words[word] = (value % U32) | 0;
    this.words[word + 1] = Math.floor(value / U32);
  }
}

const wordOfRegion = (region: number) => FIRST_REGION + region * SLOT_WORDS;
const wordOfQueuePair = (slot: number) => FIRST_QUEUE_PAIR + slot * SLOT_WORDS;

/** The owner's side. */
export class GrantTable extends Table {
  readonly #freeRegions: number[] = descending(REGIONS_MAX);
  readonly #freeQueuePairs: number[] = descending(QUEUE_PAIRS_MAX);
  readonly #usedQueuePairs = new Set<number>();
  /** Their queue pairs are closed, and their requesters have not left them. */
  readonly #leftBehind = new Set<number>();

  /** `memory` is all zero, and has {@link GRANT_TABLE_BYTES}. */
  constructor(memory: ArrayBufferLike) {
    super(memory);
    Atomics.store(this.words, WORD_LAYOUT, LAYOUT);
  }

  /** The number of the region's slot; undefined where all are taken. */
  grant(grant: RegionGrant): number | undefined {
    const region = this.#freeRegions.pop();
    if (region === undefined) return undefined;
    const { words } = this;
    const word = wordOfRegion(region);
    words[word + WORD_RKEY] = grant.rkey | 0;
    words[word + WORD_REGION_PD] = grant.pd;
    words[word + WORD_ACCESS] = grant.access;
    words[word + WORD_BASE_LOW] = grant.baseLow | 0;
    words[word + WORD_BASE_HIGH] = grant.baseHigh | 0;
    words[word + WORD_FD] = grant.fd;
    this.setNumber(word + WORD_LENGTH, grant.lengthBytes);
    this.setNumber(word + WORD_OFFSET, grant.offsetBytes);
    this.setNumber(word + WORD_SEGMENT_BYTES, grant.segmentBytes);
    Atomics.add(words, word + WORD_GENERATION, 1);
    Atomics.add(words, WORD_CHANGES, 1);
    return region;
  }

  /** No copy begins from here on; one may be running until {@link copierOf} finds nobody. */
  revoke(region: number): void {
    const word = wordOfRegion(region) + WORD_GENERATION;
    if ((Atomics.load(this.words, word) & 1) === 1) Atomics.add(this.words, word, 1);
  }

  /** A requester that copies from or to the region, except those that `hasEnded` says have ended. */
  copierOf(region: number, hasEnded: (requester: ProcessName) => boolean): ProcessName | undefined {
    for (const slots of [this.#usedQueuePairs, this.#leftBehind]) {
      for (const slot of slots) {
        if (Atomics.load(this.words, wordOfQueuePair(slot) + WORD_MARK) !== region + 1) continue;
        const requester = this.#requesterOf(slot);
        if (!hasEnded(requester)) return requester;
      }
    }
    return undefined;
  }

  /** The slot may be used again: the grant is revoked, and nobody copies. */
  release(region: number): void {
    this.#freeRegions.push(region);
  }

  /** The number of a slot for a queue pair that executes nothing yet; undefined where all are taken. */
  openQueuePair(
    qpn: number,
    pd: number,
    [first, second]: SlotSecret,
    hasEnded: (requester: ProcessName) => boolean,
  ): number | undefined {
    const slot = this.#freeQueuePairs.pop() ?? this.#abandonedSlot(hasEnded);
    if (slot === undefined) return undefined;
    const { words } = this;
    const word = wordOfQueuePair(slot);
    words.fill(0, word, word + SLOT_WORDS);
    words[word + WORD_QP_PD] = pd;
    words[word + WORD_SECRET] = first | 0;
    words[word + WORD_SECRET + 1] = second | 0;
    Atomics.store(words, word + WORD_QPN, qpn);
    this.#usedQueuePairs.add(slot);
    return slot;
  }

  /** What peers may do through the queue pair, flags of `Access`; undefined: it executes no requests. */
  setAccess(slot: number, access: number | undefined): void {
    const state = access === undefined ? 0 : EXECUTES | (access & REMOTE_ACCESS);
    Atomics.store(this.words, wordOfQueuePair(slot) + WORD_STATE, state);
  }

  /** The requester of this queue pair, while it copies. */
  copierThrough(slot: number, hasEnded: (requester: ProcessName) => boolean): ProcessName | undefined {
    if (Atomics.load(this.words, wordOfQueuePair(slot) + WORD_MARK) === 0) return undefined;
    const requester = this.#requesterOf(slot);
    return hasEnded(requester) ? undefined : requester;
  }

  closeQueuePair(slot: number): void {
    this.setAccess(slot, undefined);
    Atomics.store(this.words, wordOfQueuePair(slot) + WORD_QPN, 0);
    this.#usedQueuePairs.delete(slot);
    if (this.#isTaken(slot)) this.#leftBehind.add(slot);
    else this.#freeQueuePairs.push(slot);
  }

  #isTaken(slot: number): boolean {
    return Atomics.load(this.words, wordOfQueuePair(slot) + WORD_PID) !== 0;
  }

  #abandonedSlot(hasEnded: (requester: ProcessName) => boolean): number | undefined {
    for (const slot of this.#leftBehind) {
      if (this.#isTaken(slot) && !hasEnded(this.#requesterOf(slot))) continue;
      this.#leftBehind.delete(slot);
      return slot;
    }
    return undefined;
  }

  #requesterOf(slot: number): ProcessName {
    const word = wordOfQueuePair(slot);
    return { pid: this.words[word + WORD_PID], started: this.number(word + WORD_STARTED) };
  }
}

/** The requester's side of a queue pair. */
export class GrantReader extends Table {
  readonly #word: number;
  readonly #pd: number;

  private constructor(memory: ArrayBufferLike, word: number) {
    super(memory);
    this.#word = word;
    this.#pd = this.words[word + WORD_QP_PD];
  }

  /** Takes the slot of the peer's queue pair. Undefined: it is not a table, or not the slot of that queue pair. */
  static take(
    memory: ArrayBufferLike,
    slot: number,
    { qpn, secret }: { readonly qpn: number; readonly secret: SlotSecret },
    requester: ProcessName,
  ): GrantReader | undefined {
    if (memory.byteLength < GRANT_TABLE_BYTES || slot < 0 || slot >= QUEUE_PAIRS_MAX) return undefined;
    const words = new Int32Array(memory, 0, GRANT_TABLE_BYTES / 4);
    const word = wordOfQueuePair(slot);
    const isOfQueuePair = () =>
      Atomics.load(words, word + WORD_QPN) === qpn &&
      words[word + WORD_SECRET] === (secret[0] | 0) &&
      words[word + WORD_SECRET + 1] === (secret[1] | 0);
    if (Atomics.load(words, WORD_LAYOUT) !== LAYOUT || !isOfQueuePair()) return undefined;
    if (Atomics.compareExchange(words, word + WORD_PID, 0, requester.pid) !== 0) return undefined;
    const reader = new GrantReader(memory, word);
    // A slot whose queue pair was closed before that may have another one.
    if (!isOfQueuePair()) {
      reader.leave();
      return undefined;
    }
    reader.setNumber(word + WORD_STARTED, requester.started);
    return reader;
  }

  /** Counts grants: while it is the same, an rkey that was not found has no grant. */
  get changes(): number {
    return Atomics.load(this.words, WORD_CHANGES);
  }

  /** The grant of this key, if the peer's queue pair may use the region. */
  find(rkey: number): FoundGrant | undefined {
    const { words } = this;
    for (let region = 0; region < REGIONS_MAX; region++) {
      const word = wordOfRegion(region);
      const generation = Atomics.load(words, word + WORD_GENERATION);
      if ((generation & 1) === 0 || words[word + WORD_RKEY] !== (rkey | 0)) continue;
      const pd = words[word + WORD_REGION_PD];
      const grant: FoundGrant = {
        region,
        generation,
        rkey,
        pd,
        access: words[word + WORD_ACCESS],
        baseHigh: words[word + WORD_BASE_HIGH] >>> 0,
        baseLow: words[word + WORD_BASE_LOW] >>> 0,
        lengthBytes: this.number(word + WORD_LENGTH),
        fd: words[word + WORD_FD],
        offsetBytes: this.number(word + WORD_OFFSET),
        segmentBytes: this.number(word + WORD_SEGMENT_BYTES),
      };
      const isInside = grant.offsetBytes + grant.lengthBytes <= grant.segmentBytes;
      return pd === this.#pd && isInside && this.isCurrent(grant) ? grant : undefined;
    }
    return undefined;
  }

  isCurrent({ region, generation }: FoundGrant): boolean {
    return Atomics.load(this.words, wordOfRegion(region) + WORD_GENERATION) === generation;
  }

  /**
   * True: the peer's queue pair executes operations that need `access`, the grant is valid, and stays so until
   * {@link end}, which must follow within the same call of the program.
   */
  begin(grant: FoundGrant, access: number): boolean {
    const { words } = this;
    Atomics.store(words, this.#word + WORD_MARK, grant.region + 1);
    const state = Atomics.load(words, this.#word + WORD_STATE);
    const needed = EXECUTES | access;
    if ((state & needed) === needed && this.isCurrent(grant)) return true;
    this.end();
    return false;
  }

  /** The copy is over, and visible before whatever this thread stores from here on. */
  end(): void {
    Atomics.store(this.words, this.#word + WORD_MARK, 0);
  }

  /** The last call: the owner may use the slot again. */
  leave(): void {
    Atomics.store(this.words, this.#word + WORD_PID, 0);
  }
}

function descending(count: number): number[] {
  return Array.from({ length: count }, (_, i) => count - 1 - i);
}
