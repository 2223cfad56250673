/** Regions and windows as the NIC knows them: ranges of memory that keys open (IBTA vol. 1 §10.6). */

import { ViewCache } from '../core/view-cache.js';
import type { ForeignMemory } from './foreign-memory.js';

/** Access bits, equal to `ibv_access_flags`, that let peers write, or let windows be bound that do. */
const REMOTE_WRITE = 2;
const REMOTE_ATOMIC = 8;
const MW_BIND = 16;
const LETS_PEERS_WRITE = REMOTE_WRITE | REMOTE_ATOMIC | MW_BIND;

/** Whether a peer has, or can be given, a key to write what is registered with this access. */
export function letsPeersWrite(access: number): boolean {
  return (access & LETS_PEERS_WRITE) !== 0;
}

/** A region as the NIC knows it (IBTA vol. 1 §10.6). Addresses are 64 bits in two unsigned halves. */
export class NicMemoryRegion {
  readonly kind = 'MR';
  /** The upper 24 bits of every key that it ever has. */
  readonly handle: number;
  readonly pd: number;
  /** The current lkey and rkey, 32 bits. */
  key: number;
  /** Whether accesses may pass. */
  valid: boolean;
  /** Counts registrations; a later one may have the same key again. */
  generation = 0;
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
  /**
   * A fast-register region changes its key and range by work requests and can be invalidated; an ordinary one cannot.
   */
  readonly fastRegister: boolean;
  /** All memory that a fast-register region may be mapped onto. */
  readonly backing: Uint8Array;
  /** Where its bytes are, if they are no array of this process; `bytes` is empty then. */
  foreign: ForeignMemory | undefined;
  /** Address of byte 0 in `foreign`. */
  foreignAddress = 0;
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

/** A window as the NIC knows it (IBTA vol. 1 §10.6.7): a part of a region, with its own rkey. */
export class NicMemoryWindow {
  readonly kind = 'MW';
  /** The upper 24 bits of every key that it ever has. */
  readonly handle: number;
  readonly pd: number;
  /** Type 1 is usable by every QP of the PD; type 2 only by the QP that bound it, and it can be invalidated. */
  readonly type: 1 | 2;
  /** The current rkey, 32 bits. */
  key: number;
  valid = false;
  /** Counts bindings; a later one may have the same key again. */
  generation = 0;
  access = 0;
  /** Virtual address of its first byte, bits 63..32; 0 for a zero-based window. */
  baseHigh = 0;
  baseLow = 0;
  lengthBytes = 0;
  region: NicMemoryRegion | undefined;
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
