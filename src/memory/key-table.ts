/**
 * Memory regions, memory windows and their keys (IBTA vol. 1 §10.6), and the check every local and remote access passes.
 *
 * A key is 32 bits: a random 24-bit index that names the entry and 8 bits that change when the entry is registered or bound anew, so
 * that a stale key never validates. Ranges are compared in 64 bits without ever adding address and length: the sum may wrap
 * (CVE-2016-8636 in another stack).
 */

import { copyBytes } from '../core/bytes.js';
import { RoceError } from '../core/errors.js';
import { type RandomSource, randomInt } from '../core/random.js';
import { EXACT_HIGH_END, U32 } from '../core/u64.js';
import { ViewCache } from '../core/view-cache.js';

/** Access bits, equal to `ibv_access_flags`. */
const LOCAL_WRITE = 1;
const REMOTE_WRITE = 2;
const REMOTE_ATOMIC = 8;
const MW_BIND = 16;
const ZERO_BASED = 32;

/** What an access check says. */
export const MEMORY_OK = 0;
/** No entry has this key, or a window is not for this queue pair. */
export const MEMORY_BAD_KEY = 1;
/** The key belongs to another protection domain. */
export const MEMORY_WRONG_PD = 2;
/** The region or window is free: deregistered, invalidated or not bound yet. */
export const MEMORY_NOT_VALID = 3;
/** The entry does not grant all rights that are asked for. */
export const MEMORY_NO_ACCESS = 4;
/** Some of the bytes lie outside of the entry. */
export const MEMORY_OUT_OF_RANGE = 5;

interface KeyedRange {
  readonly pd: number;
  key: number;
  valid: boolean;
  /** Counts registrations and bindings: a new one may have the old key. */
  generation: number;
  access: number;
  baseHigh: number;
  baseLow: number;
  lengthBytes: number;
}

/** A region as the NIC knows it (IBTA vol. 1 §10.6). Addresses are 64 bits in two unsigned halves. */
export class MemoryRegion implements KeyedRange {
  /** Tells it from a window. */
  readonly kind = 'MR';
  /** The upper 24 bits of every key that it ever has. */
  readonly handle: number;
  /** Handle of its protection domain. */
  readonly pd: number;
  /** The lkey and rkey of today, 32 bits. */
  key: number;
  /** Whether accesses may pass. */
  valid: boolean;
  /** Counts registrations; a later one may have the same key again. */
  generation = 0;
  /** Bits of `ibv_access_flags`. */
  access: number;
  /** Virtual address of byte 0, bits 63..32; 0 for a zero-based region. */
  baseHigh: number;
  /** Virtual address of byte 0, bits 31..0. */
  baseLow: number;
  /** Bytes that are registered now; 0 while a fast-register region is free. */
  lengthBytes: number;
  /** The registered bytes: element 0 is the byte at the base address. */
  bytes: Uint8Array;
  /** Views of `bytes` that packets were made from. */
  views: ViewCache;
  /** A fast-register region changes its key and range by work requests and can be invalidated; an ordinary one cannot. */
  readonly fastRegister: boolean;
  /** All memory that a fast-register region may be mapped onto. */
  readonly backing: Uint8Array;
  /** Valid windows on it; while there are any it cannot go away. */
  boundWindows = 0;

  constructor(handle: number, pd: number, key: number, backing: Uint8Array, fastRegister: boolean) {
    this.handle = handle;
    this.pd = pd;
    this.key = key;
    this.valid = false;
    this.access = 0;
    this.baseHigh = 0;
    this.baseLow = 0;
    this.lengthBytes = 0;
    this.bytes = backing.subarray(0, 0);
    this.views = new ViewCache(this.bytes);
    this.fastRegister = fastRegister;
    this.backing = backing;
  }
}

/** A window as the NIC knows it (IBTA vol. 1 §10.6.7): a part of a region, under a key of its own. */
export class MemoryWindow implements KeyedRange {
  /** Tells it from a region. */
  readonly kind = 'MW';
  /** The upper 24 bits of every key that it ever has. */
  readonly handle: number;
  /** Handle of its protection domain. */
  readonly pd: number;
  /** Type 1 is usable by every QP of the PD; type 2 only by the QP that bound it, and it can be invalidated. */
  readonly type: 1 | 2;
  /** The rkey of today, 32 bits. */
  key: number;
  /** Whether it is bound. */
  valid = false;
  /** Counts bindings; a later one may have the same key again. */
  generation = 0;
  /** Bits of `ibv_access_flags`, granted by the binding. */
  access = 0;
  /** Virtual address of its first byte, bits 63..32; 0 for a zero-based window. */
  baseHigh = 0;
  /** Virtual address of its first byte, bits 31..0. */
  baseLow = 0;
  /** Bytes that it opens. */
  lengthBytes = 0;
  /** What it is bound to; undefined while it is not. */
  region: MemoryRegion | undefined;
  /** Where in the region the window starts. */
  regionOffset = 0;
  /** The queue pair that bound it, which alone may use a type 2 window. */
  qpn = 0;

  constructor(handle: number, pd: number, type: 1 | 2, key: number) {
    this.handle = handle;
    this.pd = pd;
    this.type = type;
    this.key = key;
  }
}

/** Up to here a loop is faster than any view. */
const SHORT_COPY_BYTES = 64;

const NEVER_VALID = { valid: false, generation: 0 } as const;
const ALWAYS_VALID = { valid: true, generation: 0 } as const;

const NO_BYTES = new Uint8Array(0);

/** A checked range of registered memory: bytes[offset, offset + length asked for). Reused. */
export class MemoryRange {
  /** The array that the range stands in. */
  bytes: Uint8Array = NO_BYTES;
  /** Where in `bytes` the range begins. */
  offset = 0;
  #views: ViewCache | undefined;
  #owner: { readonly valid: boolean; readonly generation: number } = NEVER_VALID;
  #generation = 0;

  /** Points it at bytes of a region, or of the region under a window, whose validity it follows from now on. */
  set(owner: MemoryRegion | MemoryWindow, bytes: Uint8Array, offset: number, views: ViewCache): void {
    this.#views = views;
    this.#owner = owner;
    this.#generation = owner.generation;
    this.bytes = bytes;
    this.offset = offset;
  }

  /** Bytes that no key protects and that never go away. */
  setPlain(bytes: Uint8Array, offset: number): void {
    this.#views = undefined;
    this.#owner = ALWAYS_VALID;
    this.#generation = ALWAYS_VALID.generation;
    this.bytes = bytes;
    this.offset = offset;
  }

  /** Makes it the same range as `other`, of the same generation. */
  copyFrom(other: MemoryRange): void {
    this.#views = other.#views;
    this.#owner = other.#owner;
    this.#generation = other.#generation;
    this.bytes = other.bytes;
    this.offset = other.offset;
  }

  /** Copies `length` bytes from `skip` bytes into the range on. */
  copyTo(skip: number, length: number, to: Uint8Array, toOffset: number): void {
    const start = this.offset + skip;
    if (this.#views === undefined || length <= SHORT_COPY_BYTES) copyBytes(this.bytes, start, to, toOffset, length);
    else to.set(this.#views.view(start, length), toOffset);
  }

  /** False once the region or window was deregistered, invalidated or bound anew: messages of many packets ask before each one. */
  get stillValid(): boolean {
    return this.#owner.valid && this.#owner.generation === this.#generation;
  }
}

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

/** What a BIND_MW work request asks for. Addresses are 64 bits in two unsigned halves. */
export interface BindRequest {
  /** Handle of the window. */
  window: number;
  /** lkey of the region to bind to. */
  regionKey: number;
  /** The window's next rkey: its handle in the upper 24 bits, any new low byte. */
  newKey: number;
  /** First virtual address, bits 63..32. */
  baseHigh: number;
  /** First virtual address, bits 31..0. */
  baseLow: number;
  /** 0 unbinds. */
  lengthBytes: number;
  /** Bits of `ibv_access_flags`; ZERO_BASED for type 2 windows only. */
  access: number;
  /** The queue pair whose send queue has the request. */
  qpn: number;
  /** Protection domain of that queue pair. */
  pd: number;
}

/** All keys of one NIC. */
export class KeyTable {
  readonly #random: RandomSource;
  /** By the upper 24 bits of the key. Entries keep their index for life. */
  readonly #entries = new Map<number, MemoryRegion | MemoryWindow>();

  constructor(random: RandomSource) {
    this.#random = random;
  }

  /** Regions and windows that exist, valid or not. */
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
  register(pd: number, bytes: Uint8Array, baseHigh: number, baseLow: number, access: number): MemoryRegion {
    checkAccessFlags(access);
    const key = this.#newKey();
    const region = new MemoryRegion(key >>> 8, pd, key, bytes, false);
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

  /** A region in state FREE, to be mapped by REG_MR work requests onto parts of `backing`. */
  allocFastRegister(pd: number, backing: Uint8Array): MemoryRegion {
    const key = this.#newKey();
    const region = new MemoryRegion(key >>> 8, pd, key, backing, true);
    this.#entries.set(region.handle, region);
    return region;
  }

  /** A window that is not bound yet, with a fresh key. */
  allocWindow(pd: number, type: 1 | 2): MemoryWindow {
    const key = this.#newKey();
    const window = new MemoryWindow(key >>> 8, pd, type, key);
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

  /** Unbinds the window and forgets it. Throws ERR_ROCE_NOT_FOUND for an unknown handle. */
  freeWindow(handle: number): void {
    const entry = this.#entries.get(handle);
    if (entry?.kind !== 'MW') throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such memory window');
    unbind(entry);
    this.#entries.delete(handle);
  }

  /** True when the PD still owns keys. */
  ownsAny(pd: number): boolean {
    for (const entry of this.#entries.values()) if (entry.pd === pd) return true;
    return false;
  }

  /**
   * Checks an access and fills `out`. `required` are the access bits that must all be present (0: local read). `qpn` decides about
   * type 2 windows; local accesses pass -1, which no window accepts: an lkey always names a region.
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
    if (entry.kind === 'MR') {
      out.set(entry, entry.bytes, offset, entry.views);
      return MEMORY_OK;
    }
    if (qpn < 0 || (entry.type === 2 && entry.qpn !== qpn)) return MEMORY_BAD_KEY;
    const region = entry.region!;
    out.set(entry, region.bytes, entry.regionOffset + offset, region.views);
    return MEMORY_OK;
  }

  /**
   * BIND_MW (IBTA §10.6.7.2.1): true when the window now has the new key and range. Zero length unbinds. False: nothing changed and
   * the work request fails with MW_BIND_ERR.
   */
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

  /** REG_MR: maps a free fast-register region onto `length` bytes of its backing from `offset`. False when that is not allowed. */
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
    if (remoteWithoutLocalWrite(access)) return false;
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
   * LOCAL_INV and the invalidate of SEND_WITH_INV: only fast-register regions without bound windows, and type 2 windows bound by this
   * QP, can be invalidated. False when the key names nothing of the kind.
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

function unbind(window: MemoryWindow): void {
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
}
