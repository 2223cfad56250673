/**
 * A pool of registered buffers shared by all connections (Azure storage paper §4.1: large slabs registered once,
 * "scaled up and down on demand"). A slab serves one size class and may change it when unused. A piece has at most one
 * holder; waiting is first come, first served across classes, so small requests cannot starve a large one; the pool
 * never exceeds `bytesMax` and shrinks back to `slabsMin` slabs when idle.
 */

import type { Clock } from '../../core/clock.js';
import { withDefaults } from '../../core/defaults.js';
import { RoceError } from '../../core/errors.js';

/** Registered memory: a memory region, or another object that owns bytes and can release them. */
export interface Slab {
  /** All of its memory. */
  readonly bytes: Uint8Array;
  /** Releases the memory. */
  close(): Promise<void>;
}

export interface BufferPoolOptions<S extends Slab> {
  readonly allocate: (bytes: number) => Promise<S>;
  readonly clock: Clock;
  /** Hard cap of registered bytes. Default 64 MiB. */
  readonly bytesMax?: number | undefined;
  readonly idleNs?: number | undefined;
  readonly waitersMax?: number | undefined;
}

const KIB = 1024;
const CLASS_BYTES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB] as const;
export const PIECE_BYTES_MAX = CLASS_BYTES[CLASS_BYTES.length - 1];

export function pieceBytes(bytes: number): number {
  return CLASS_BYTES.find((size) => size >= bytes) ?? PIECE_BYTES_MAX;
}

const SLAB_BYTES = 2048 * KIB;
const DEFAULTS = { bytesMax: 64 * 1024 * KIB, idleNs: 60e9, waitersMax: 1024 };

interface Carved<S> {
  readonly slab: S;
  class: number;
  free: number[];
  used: number;
  idleSinceNs: number;
}

/** A piece of a slab on loan. */
export class BufferLease<S extends Slab = Slab> {
  /** The slab it is cut from. */
  readonly slab: S;
  /** Where it begins in the slab. */
  readonly offset: number;
  /** Requested bytes; the piece may be longer. */
  readonly length: number;
  #giveBack: (() => void) | undefined;

  /** @internal */
  constructor(slab: S, offset: number, length: number, giveBack: () => void) {
    this.slab = slab;
    this.offset = offset;
    this.length = length;
    this.#giveBack = giveBack;
  }

  /** The piece as a view of its slab; valid until it is released. */
  get bytes(): Uint8Array {
    return this.slab.bytes.subarray(this.offset, this.offset + this.length);
  }

  /** Ends the loan; a second call does nothing. */
  release(): void {
    const giveBack = this.#giveBack;
    this.#giveBack = undefined;
    giveBack?.();
  }
}

interface Waiter<S extends Slab> {
  readonly bytes: number;
  readonly onRelease: () => void;
  readonly resolve: (lease: BufferLease<S>) => void;
  readonly reject: (error: unknown) => void;
}

/** Lends out registered memory; memory is registered on first use and released when it is idle. */
export class BufferPool<S extends Slab> {
  /** Counters of requests and slabs. */
  readonly counters = {
    /** Requests that found a buffer at once. */
    hits: 0,
    /** Requests that had to wait for one, or for a new slab. */
    misses: 0,
    /** Slabs that were registered. */
    grown: 0,
    /** Slabs that were released. */
    shrunk: 0,
    /** Requests refused because too many waited. */
    refused: 0,
  };
  readonly #allocate: (bytes: number) => Promise<S>;
  readonly #clock: Clock;
  readonly #limits: typeof DEFAULTS;
  readonly #slabs: Carved<S>[] = [];
  readonly #waiters: Waiter<S>[] = [];
  #growing: Promise<void> | undefined;
  #inUse = 0;
  #cancelShrink: (() => void) | undefined;
  #closed = false;

  constructor(options: BufferPoolOptions<S>) {
    const { allocate, clock, ...limits } = options;
    this.#allocate = allocate;
    this.#clock = clock;
    this.#limits = withDefaults(DEFAULTS, limits);
  }

  /** Bytes of all slabs now. */
  get registeredBytes(): number {
    return this.#slabs.length * SLAB_BYTES;
  }

  /** Pieces on loan. */
  get inUse(): number {
    return this.#inUse;
  }

  /** Requests that wait for a buffer now. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /**
   * A buffer of `bytes` (1..PIECE_BYTES_MAX), as soon as there is one. Throws ERR_ROCE_OUT_OF_RANGE for another length.
   * Rejects with ERR_ROCE_LIMIT when too many wait, ERR_ROCE_CLOSED when the pool closes, and with the error of
   * `allocate` if no buffer is in use that could be released instead. `onRelease` is called when the buffer is
   * released.
   */
  acquire(bytes: number, onRelease: () => void = () => {}): Promise<BufferLease<S>> {
    const lease = this.acquireNow(bytes, onRelease);
    if (lease !== undefined) return Promise.resolve(lease);
    if (this.#closed) return Promise.reject(closedError());
    if (this.#waiters.length >= this.#limits.waitersMax) {
      this.counters.refused++;
      return Promise.reject(
        new RoceError('ERR_ROCE_LIMIT', `too many requests: ${this.#waiters.length} wait for a buffer`),
      );
    }
    this.counters.misses++;
    return new Promise((resolve, reject) => {
      this.#waiters.push({ bytes, onRelease, resolve, reject });
      this.#grow();
    });
  }

  /**
   * {@link acquire} without waiting. Undefined: no buffer is free, others wait, or the pool closes. Throws as
   * that does.
   */
  acquireNow(bytes: number, onRelease: () => void = () => {}): BufferLease<S> | undefined {
    if (bytes < 1 || bytes > PIECE_BYTES_MAX) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `a buffer cannot have ${bytes} bytes`,
        `give 1 to ${PIECE_BYTES_MAX}`,
      );
    }
    if (this.#closed || this.#waiters.length > 0) return undefined;
    const lease = this.#take(bytes, onRelease);
    if (lease !== undefined) this.counters.hits++;
    return lease;
  }

  /** Releases all slabs, also one that is being made. Outstanding leases must no longer be used. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelShrink?.();
    for (const { reject } of this.#waiters.splice(0)) reject(closedError());
    await this.#growing;
    for (const { slab } of this.#slabs.splice(0)) await slab.close();
  }

  #take(bytes: number, onRelease: () => void): BufferLease<S> | undefined {
    const wanted = CLASS_BYTES.findIndex((size) => size >= bytes);
    const found =
      this.#slabs.find((carved) => carved.class === wanted && carved.free.length > 0) ??
      this.#slabs.find((carved) => carved.used === 0);
    if (found === undefined) return undefined;
    if (found.class !== wanted) carve(found, wanted);
    const offset = found.free.pop()!;
    found.used++;
    this.#inUse++;
    return new BufferLease(found.slab, offset, bytes, () => {
      this.#giveBack(found, offset);
      onRelease();
    });
  }

  #giveBack(carved: Carved<S>, offset: number): void {
    if (this.#closed) return;
    carved.free.push(offset);
    carved.used--;
    this.#inUse--;
    if (carved.used === 0) {
      carved.idleSinceNs = this.#clock.nowNs();
      this.#armShrink();
    }
    this.#serve();
  }

  #serve(): void {
    while (this.#waiters.length > 0) {
      const [{ bytes, onRelease }] = this.#waiters;
      const lease = this.#take(bytes, onRelease);
      if (lease === undefined) {
        this.#grow();
        return;
      }
      this.#waiters.shift()!.resolve(lease);
    }
  }

  #grow(): void {
    if (this.#growing !== undefined || this.#closed || this.registeredBytes + SLAB_BYTES > this.#limits.bytesMax)
      return;
    this.#growing = this.#addSlab().then((added) => {
      this.#growing = undefined;
      if (added) this.#serve();
    });
  }

  async #addSlab(): Promise<boolean> {
    try {
      const slab = await this.#allocate(SLAB_BYTES);
      if (this.#closed) {
        await slab.close();
        return false;
      }
      this.counters.grown++;
      this.#slabs.push({ slab, class: -1, free: [], used: 0, idleSinceNs: this.#clock.nowNs() });
      this.#armShrink();
      return true;
    } catch (error) {
      // If nothing is in use, nothing will be released to wake the waiters.
      if (this.#inUse === 0) for (const { reject } of this.#waiters.splice(0)) reject(error);
      return false;
    }
  }

  #armShrink(): void {
    if (this.#cancelShrink !== undefined || this.#closed) return;
    const idle = this.#slabs.filter(({ used }) => used === 0);
    if (idle.length === 0) return;
    const dueNs = Math.min(...idle.map(({ idleSinceNs }) => idleSinceNs)) + this.#limits.idleNs;
    this.#cancelShrink = this.#clock.wakeAt(dueNs, () => {
      this.#cancelShrink = undefined;
      this.#shrink();
      this.#armShrink();
    });
  }

  #shrink(): void {
    const now = this.#clock.nowNs();
    for (let i = this.#slabs.length - 1; i >= 0; i--) {
      const { slab, used, idleSinceNs } = this.#slabs[i];
      if (used > 0 || now < idleSinceNs + this.#limits.idleNs) continue;
      this.#slabs.splice(i, 1);
      this.counters.shrunk++;
      void slab.close().catch(() => {});
    }
  }
}

function carve<S extends Slab>(carved: Carved<S>, sizeClass: number): void {
  carved.class = sizeClass;
  carved.free = [];
  const step = CLASS_BYTES[sizeClass];
  for (let offset = carved.slab.bytes.length - step; offset >= 0; offset -= step) carved.free.push(offset);
}

function closedError(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the buffer pool is closed');
}
