/**
 * Memory regions, memory windows and their keys (IBTA vol. 1 §10.6), and the check every local and remote access
 * passes.
 *
 * A key is 32 bits: a random 24-bit index that names the entry and 8 bits that change when the entry is registered or
 * bound again, so that a stale key never validates. Ranges are compared in 64 bits without ever adding address and
 * length: the sum may wrap (CVE-2016-8636 in another stack).
 */

import { RoceError } from '../core/errors.js';
import { type RandomSource, randomInt } from '../core/random.js';
import { EXACT_HIGH_END, U32 } from '../core/u64.js';
import { ViewCache } from '../core/view-cache.js';
import type { ForeignMemory } from './foreign-memory.js';
import { NicMemoryRegion, NicMemoryWindow } from './keyed-range.js';
import type { MemoryRange } from './memory-range.js';

/** Access bits, equal to `ibv_access_flags`. */
const LOCAL_WRITE = 1;
const REMOTE_WRITE = 2;
const REMOTE_ATOMIC = 8;
const MW_BIND = 16;
const ZERO_BASED = 32;
const FLUSH_PERSISTENT = 512;

export const MEMORY_OK = 0;
/** No entry has this key, or a window is not for this queue pair. */
export const MEMORY_BAD_KEY = 1;
export const MEMORY_WRONG_PD = 2;
/**
 * The region or window is free: deregistered, invalidated or not bound yet. Or its memory is gone: the program gave it
 * to another thread.
 */
export const MEMORY_NOT_VALID = 3;
export const MEMORY_NO_ACCESS = 4;
export const MEMORY_OUT_OF_RANGE = 5;

/** va - base as a Number, or -1 when va < base or the distance is not below 2^53. */
function distance(vaHigh: number, vaLow: number, baseHigh: number, baseLow: number): number {
  let low = vaLow - baseLow;
  let high = vaHigh - baseHigh;
  if (low < 0) {
    low += U32;
    high -= 1;
  }
  return high < 0 || high >= EXACT_HIGH_END ? -1 : high * U32 + low;
}

/** True when [va, va + length) lies inside the range; `offset` is the distance from the base, from {@link distance}. */
function fits(offset: number, length: number, rangeBytes: number): boolean {
  return offset >= 0 && length <= rangeBytes && offset <= rangeBytes - length;
}

/** Addresses are 64 bits in two unsigned halves. */
export interface BindRequest {
  window: number;
  regionKey: number;
  /** The window's next rkey: its handle in the upper 24 bits, any new low byte. */
  newKey: number;
  /** First virtual address, bits 63..32. */
  baseHigh: number;
  /** First virtual address, bits 31..0. */
  baseLow: number;
  lengthBytes: number;
  /** Bits of `ibv_access_flags`; ZERO_BASED for type 2 windows only. */
  access: number;
  qpn: number;
  pd: number;
}

/** A range of memory outside this process. */
export interface ForeignBytes {
  readonly memory: ForeignMemory;
  readonly address: number;
  readonly lengthBytes: number;
}

const NO_BYTES = new Uint8Array(0);

export class KeyTable {
  readonly #random: RandomSource;
  /** Entries keep their index permanently. */
  readonly #entries = new Map<number, NicMemoryRegion | NicMemoryWindow>();

  constructor(random: RandomSource) {
    this.#random = random;
  }

  get size(): number {
    return this.#entries.size;
  }

  #newKey(): number {
    for (;;) {
      const index = randomInt(this.#random, 1, 0xffffff);
      if (!this.#entries.has(index)) return ((index << 8) | (this.#random.u32() & 0xff)) >>> 0;
    }
  }

  /** Registers bytes at an address. Throws ERR_ROCE_CONFLICT when the access flags contradict each other. */
  register(
    pd: number,
    bytes: Uint8Array,
    baseHigh: number,
    baseLow: number,
    access: number,
    key = this.#newKey(),
  ): NicMemoryRegion {
    checkAccessFlags(access);
    const region = new NicMemoryRegion(key >>> 8, pd, key, bytes, false);
    region.valid = true;
    region.access = access;
    region.baseHigh = access & ZERO_BASED ? 0 : baseHigh;
    region.baseLow = access & ZERO_BASED ? 0 : baseLow;
    region.lengthBytes = bytes.length;
    region.bytes = bytes;
    region.views = new ViewCache(bytes);
    this.#entries.set(region.handle, region);
    return region;
  }

  /** Registers `lengthBytes` at `address` of memory outside this process. Throws what {@link register} throws. */
  registerForeign(
    pd: number,
    { memory, address, lengthBytes }: ForeignBytes,
    baseHigh: number,
    baseLow: number,
    access: number,
    key?: number,
  ): NicMemoryRegion {
    const region = this.register(pd, NO_BYTES, baseHigh, baseLow, access, key);
    region.foreign = memory;
    region.foreignAddress = address;
    region.lengthBytes = lengthBytes;
    return region;
  }

  /** A region in state FREE, to be mapped by REG_MR work requests onto parts of `backing`. */
  allocFastRegister(pd: number, backing: Uint8Array): NicMemoryRegion {
    const key = this.#newKey();
    const region = new NicMemoryRegion(key >>> 8, pd, key, backing, true);
    this.#entries.set(region.handle, region);
    return region;
  }

  allocWindow(pd: number, type: 1 | 2): NicMemoryWindow {
    const key = this.#newKey();
    const window = new NicMemoryWindow(key >>> 8, pd, type, key);
    this.#entries.set(window.handle, window);
    return window;
  }

  /** Throws ERR_ROCE_BUSY while windows are bound to the region, ERR_ROCE_NOT_FOUND for an unknown handle. */
  deregister(handle: number): void {
    const entry = this.#entries.get(handle);
    if (entry?.kind !== 'MR') throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such memory region');
    if (entry.boundWindows > 0) {
      throw new RoceError(
        'ERR_ROCE_BUSY',
        `${entry.boundWindows} memory window(s) are bound to the region`,
        'unbind or free them first',
      );
    }
    entry.valid = false;
    this.#entries.delete(handle);
  }

  /**
   * Replaces a region by one that `register` makes with its key; accesses in progress to the old one fail. Throws what
   * {@link deregister} and `register` throw; nothing has changed then.
   */
  reregister(handle: number, register: (key: number) => NicMemoryRegion): NicMemoryRegion {
    const old = this.#entries.get(handle);
    if (old?.kind === 'MR' && old.fastRegister) {
      throw new RoceError('ERR_ROCE_UNSUPPORTED', 'a fast-register region is registered by work requests');
    }
    this.deregister(handle);
    const { key, generation } = old as NicMemoryRegion;
    try {
      const region = register(key);
      region.generation = generation + 1;
      return region;
    } catch (error) {
      (old as NicMemoryRegion).valid = true;
      this.#entries.set(handle, old!);
      throw error;
    }
  }

  /** Unbinds and removes the window. Throws ERR_ROCE_NOT_FOUND for an unknown handle. */
  freeWindow(handle: number): void {
    const entry = this.#entries.get(handle);
    if (entry?.kind !== 'MW') throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such memory window');
    unbind(entry);
    this.#entries.delete(handle);
  }

  ownsAny(pd: number): boolean {
    for (const entry of this.#entries.values()) if (entry.pd === pd) return true;
    return false;
  }

  /**
   * `required` are the access bits that must all be present (0: local read). `qpn` decides about type 2 windows; local
   * accesses pass -1, which no window accepts: an lkey always names a region.
   */
  resolve(
    key: number,
    pd: number,
    qpn: number,
    vaHigh: number,
    vaLow: number,
    lengthBytes: number,
    required: number,
    out: MemoryRange,
  ): number {
    const entry = this.#entries.get(key >>> 8);
    if (entry === undefined || entry.key !== key) return MEMORY_BAD_KEY;
    if (entry.pd !== pd) return MEMORY_WRONG_PD;
    if (!entry.valid) return MEMORY_NOT_VALID;
    if ((entry.access & required) !== required) return MEMORY_NO_ACCESS;
    const offset = distance(vaHigh, vaLow, entry.baseHigh, entry.baseLow);
    if (!fits(offset, lengthBytes, entry.lengthBytes)) return MEMORY_OUT_OF_RANGE;
    if (entry.kind === 'MR') return place(entry, entry, offset, lengthBytes, out);
    if (qpn < 0 || (entry.type === 2 && entry.qpn !== qpn)) return MEMORY_BAD_KEY;
    return place(entry, entry.region!, entry.regionOffset + offset, lengthBytes, out);
  }

  /** {@link resolve} for the whole range that the key opens. */
  resolveWhole(key: number, pd: number, qpn: number, required: number, out: MemoryRange): number {
    const entry = this.#entries.get(key >>> 8);
    if (entry === undefined) return MEMORY_BAD_KEY;
    const { baseHigh, baseLow, lengthBytes } = entry;
    return this.resolve(key, pd, qpn, baseHigh, baseLow, lengthBytes, required, out);
  }

  /** BIND_MW (IBTA §10.6.7.2.1): true when the window now has the new key and range. Zero length unbinds. */
  bind(request: BindRequest): boolean {
    const window = this.#entries.get(request.window);
    if (window?.kind !== 'MW' || window.pd !== request.pd || request.newKey >>> 8 !== window.handle) return false;
    // Type 2 windows must be free, type 1 windows may be bound over.
    if (window.type === 2 && window.valid) return false;
    const zeroBased = (request.access & ZERO_BASED) !== 0;
    if (zeroBased && window.type === 1) return false;
    if (request.lengthBytes === 0) {
      unbind(window);
      window.key = request.newKey;
      return true;
    }
    const region = this.#entries.get(request.regionKey >>> 8);
    if (region?.kind !== 'MR' || region.key !== request.regionKey || region.pd !== window.pd || !region.valid)
      return false;
    if ((request.access & FLUSH_PERSISTENT) !== 0) return false;
    if ((region.access & MW_BIND) === 0 || (region.access & ZERO_BASED) !== 0) return false;
    const needsLocalWrite = (request.access & (REMOTE_WRITE | REMOTE_ATOMIC)) !== 0;
    if (needsLocalWrite && (region.access & LOCAL_WRITE) === 0) return false;
    const offset = distance(request.baseHigh, request.baseLow, region.baseHigh, region.baseLow);
    if (!fits(offset, request.lengthBytes, region.lengthBytes)) return false;
    unbind(window);
    window.key = request.newKey;
    window.valid = true;
    window.generation++;
    window.access = request.access;
    window.baseHigh = zeroBased ? 0 : request.baseHigh;
    window.baseLow = zeroBased ? 0 : request.baseLow;
    window.lengthBytes = request.lengthBytes;
    window.region = region;
    window.regionOffset = offset;
    window.qpn = request.qpn;
    region.boundWindows++;
    return true;
  }

  /** REG_MR: maps a free fast-register region onto `length` bytes of its backing from `offset`. */
  fastRegister(
    handle: number,
    pd: number,
    newKey: number,
    offsetBytes: number,
    lengthBytes: number,
    baseHigh: number,
    baseLow: number,
    access: number,
  ): boolean {
    const region = this.#entries.get(handle);
    if (region?.kind !== 'MR' || !region.fastRegister || region.pd !== pd || region.valid) return false;
    if (newKey >>> 8 !== region.handle || !fits(offsetBytes, lengthBytes, region.backing.length)) return false;
    if (remoteWithoutLocalWrite(access) || (access & FLUSH_PERSISTENT) !== 0) return false;
    region.key = newKey;
    region.valid = true;
    region.generation++;
    region.access = access;
    region.baseHigh = access & ZERO_BASED ? 0 : baseHigh;
    region.baseLow = access & ZERO_BASED ? 0 : baseLow;
    region.lengthBytes = lengthBytes;
    region.bytes = region.backing.subarray(offsetBytes, offsetBytes + lengthBytes);
    region.views = new ViewCache(region.bytes);
    return true;
  }

  /**
   * LOCAL_INV and the invalidate of SEND_WITH_INV: only fast-register regions without bound windows, and type 2 windows
   * bound by this QP, can be invalidated.
   */
  invalidate(key: number, pd: number, qpn: number): boolean {
    const entry = this.#entries.get(key >>> 8);
    if (entry === undefined || entry.key !== key || entry.pd !== pd || !entry.valid) return false;
    if (entry.kind === 'MW') {
      if (entry.type !== 2 || entry.qpn !== qpn) return false;
      unbind(entry);
      return true;
    }
    if (!entry.fastRegister || entry.boundWindows > 0) return false;
    entry.valid = false;
    return true;
  }

  /** Type 2 windows die with the QP that bound them. */
  unbindAllOf(qpn: number): void {
    for (const entry of this.#entries.values())
      if (entry.kind === 'MW' && entry.type === 2 && entry.qpn === qpn) unbind(entry);
  }
}

function unbind(window: NicMemoryWindow): void {
  if (!window.valid) return;
  window.valid = false;
  window.qpn = 0;
  window.region!.boundWindows--;
  window.region = undefined;
}

function remoteWithoutLocalWrite(access: number): boolean {
  return (access & (REMOTE_WRITE | REMOTE_ATOMIC)) !== 0 && (access & LOCAL_WRITE) === 0;
}

function checkAccessFlags(access: number): void {
  if (remoteWithoutLocalWrite(access)) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'remote write or remote atomic access needs local write access as well',
      'add LOCAL_WRITE (IBTA 10.6.2.1)',
    );
  }
  if ((access & FLUSH_PERSISTENT) !== 0) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', 'the memory is not persistent', 'register it without FLUSH_PERSISTENT');
  }
}

function place(
  owner: NicMemoryRegion | NicMemoryWindow,
  region: NicMemoryRegion,
  offset: number,
  lengthBytes: number,
  out: MemoryRange,
): number {
  const { bytes, views } = region;
  if (region.foreign !== undefined) {
    if (!region.valid) return MEMORY_NOT_VALID; // A window does not know that an access to its region has failed.
    out.setForeign(owner, region, offset, lengthBytes);
    return MEMORY_OK;
  }
  if (offset + lengthBytes > bytes.length) return MEMORY_NOT_VALID;
  out.set(owner, bytes, offset, views);
  return MEMORY_OK;
}
