/**
 * Slots are made when first needed and used again indefinitely, so that a switch in its stride allocates nothing.
 * Invariant: a slot is free, or has one owner: a queue, a cable, or the driver. Nodes of one network may share a pool:
 * a frame then keeps its slot from the host that sends it to the host that receives it.
 */

import { copyToSlot } from 'rocev2/internal/core';

const INITIAL_SLOTS = 64;
const GROWTH_SLOTS = 8;
const CACHE_LINE_BYTES = 64;

export interface FrameStorage {
  readonly wholeBytesMax: number;
  /** The bytes after it are undefined, and may be those of other frames. */
  readonly headBytes: number;
}

export function keptBytes(length: number, storage: FrameStorage | undefined): number {
  return storage === undefined || length <= storage.wholeBytesMax ? length : storage.headBytes;
}

function keepFrame(
  bytes: Uint8Array,
  offset: number,
  length: number,
  slot: Uint8Array,
  storage: FrameStorage | undefined,
): void {
  if (storage === undefined || length <= storage.wholeBytesMax) {
    copyToSlot(bytes, offset, slot, length);
    return;
  }
  const { headBytes } = storage;
  if (bytes.length === headBytes) slot.set(bytes);
  else for (let i = 0; i < headBytes; i++) slot[i] = bytes[offset + i];
}

/**
 * Slots for `count` further frames of `slotBytes` each, in one piece of memory: frames that are used together are
 * adjacent.
 */
function newSlots(count: number, slotBytes: number): Uint8Array[] {
  const memory = new ArrayBuffer(count * slotBytes);
  return Array.from({ length: count }, (_, i) => new Uint8Array(memory, i * slotBytes, slotBytes));
}

export class FramePool {
  lengths: Int32Array = new Int32Array(INITIAL_SLOTS);
  next: Int32Array = new Int32Array(INITIAL_SLOTS);
  ingress: Uint16Array = new Uint16Array(INITIAL_SLOTS);
  /** By slot: 0..7. */
  priority: Uint8Array = new Uint8Array(INITIAL_SLOTS);
  /** By slot: where the IP header begins; 0 without one. */
  ipOffset: Uint8Array = new Uint8Array(INITIAL_SLOTS);
  /** By slot: when the frame arrives at the end of the cable that it is on. */
  arrivalNs: Float64Array = new Float64Array(INITIAL_SLOTS);

  readonly storage: FrameStorage | undefined;
  readonly #slotBytes: number;
  readonly #slots: Uint8Array[] = [];
  readonly #free: number[] = [];
  /** Cached, made again only when a slot's length differs from its last use. */
  readonly #views: Uint8Array[] = [];

  /** For frames of at most `frameBytesMax`, kept whole unless `storage` limits that. */
  constructor(frameBytesMax: number, storage?: FrameStorage) {
    const bytes = storage === undefined ? frameBytesMax : Math.min(frameBytesMax, storage.wholeBytesMax);
    this.#slotBytes = Math.ceil(bytes / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
    this.storage = storage;
  }

  /** Slots that have an owner. */
  get used(): number {
    return this.#slots.length - this.#free.length;
  }

  allocate(length: number): number {
    if (this.#free.length === 0) this.#grow();
    const slot = this.#free.pop()!;
    this.lengths[slot] = length;
    return slot;
  }

  store(bytes: Uint8Array, offset: number, length: number): number {
    const slot = this.allocate(length);
    keepFrame(bytes, offset, length, this.#slots[slot], this.storage);
    return slot;
  }

  /** The slot's whole memory; the frame begins at 0, or what is kept of it. */
  bytes(slot: number): Uint8Array {
    return this.#slots[slot];
  }

  /** The frame in the slot; valid until the slot is released. */
  view(slot: number): Uint8Array {
    const length = this.lengths[slot];
    if (this.#views[slot].length !== length) this.#views[slot] = this.#slots[slot].subarray(0, length);
    return this.#views[slot];
  }

  release(slot: number): void {
    this.#free.push(slot);
  }

  #grow(): void {
    const before = this.#slots.length;
    if (before === this.lengths.length) {
      this.lengths = enlarged(this.lengths, new Int32Array(2 * before));
      this.next = enlarged(this.next, new Int32Array(2 * before));
      this.ingress = enlarged(this.ingress, new Uint16Array(2 * before));
      this.priority = enlarged(this.priority, new Uint8Array(2 * before));
      this.ipOffset = enlarged(this.ipOffset, new Uint8Array(2 * before));
      this.arrivalNs = enlarged(this.arrivalNs, new Float64Array(2 * before));
    }
    for (const slot of newSlots(GROWTH_SLOTS, this.#slotBytes)) {
      this.#slots.push(slot);
      this.#views.push(slot);
    }
    for (let slot = before + GROWTH_SLOTS - 1; slot >= before; slot--) this.#free.push(slot);
  }
}

function enlarged<T extends Float64Array | Int32Array | Uint16Array | Uint8Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}
