/**
 * The switch's packet memory: frames in numbered slots, each with the few facts the switch keeps about it. Slots are made when first needed
 * and used again for ever, so that a switch in its stride allocates nothing.
 *
 * Invariant: a slot is free, or in one queue, or in the driver's hands.
 */

import { copyToSlot } from '../core/bytes.js';

const INITIAL_SLOTS = 64;

/** Slots of one size, grown on demand and never given back. */
export class FramePool {
  /** By slot: bytes of the frame. */
  lengths: Int32Array = new Int32Array(INITIAL_SLOTS);
  /** By slot: the next one in its queue. */
  next: Int32Array = new Int32Array(INITIAL_SLOTS);
  /** By slot: the port it came in by. */
  ingress: Uint16Array = new Uint16Array(INITIAL_SLOTS);
  /** By slot: 0..7. */
  priority: Uint8Array = new Uint8Array(INITIAL_SLOTS);
  /** By slot: where the IP header begins; 0 without one. */
  ipOffset: Uint8Array = new Uint8Array(INITIAL_SLOTS);

  readonly #slotBytes: number;
  readonly #slots: Uint8Array[] = [];
  readonly #free: number[] = [];
  /** Cached, made anew only when a slot's length differs from its last use. */
  readonly #views: Uint8Array[] = [];

  constructor(slotBytes: number) {
    this.#slotBytes = slotBytes;
  }

  /** Slots that are not free. */
  get used(): number {
    return this.#slots.length - this.#free.length;
  }

  /** A slot of unknown content and `length` bytes. */
  allocate(length: number): number {
    const slot = this.#free.pop() ?? this.#grow();
    this.lengths[slot] = length;
    return slot;
  }

  /** Copies a frame into a slot; at most the slot size. */
  store(bytes: Uint8Array, offset: number, length: number): number {
    const slot = this.allocate(length);
    copyToSlot(bytes, offset, this.#slots[slot], length);
    return slot;
  }

  /** The slot's whole memory; the frame begins at 0. */
  bytes(slot: number): Uint8Array {
    return this.#slots[slot];
  }

  /** The frame in the slot; valid until the slot is released. */
  view(slot: number): Uint8Array {
    const length = this.lengths[slot];
    if (this.#views[slot].length !== length) this.#views[slot] = this.#slots[slot].subarray(0, length);
    return this.#views[slot];
  }

  /** The slot is free; its number may be given out again at once. */
  release(slot: number): void {
    this.#free.push(slot);
  }

  #grow(): number {
    const slot = this.#slots.length;
    if (slot === this.lengths.length) {
      this.lengths = enlarged(this.lengths, new Int32Array(2 * slot));
      this.next = enlarged(this.next, new Int32Array(2 * slot));
      this.ingress = enlarged(this.ingress, new Uint16Array(2 * slot));
      this.priority = enlarged(this.priority, new Uint8Array(2 * slot));
      this.ipOffset = enlarged(this.ipOffset, new Uint8Array(2 * slot));
    }
    this.#slots.push(new Uint8Array(this.#slotBytes));
    this.#views.push(this.#slots[slot].subarray(0, 0));
    return slot;
  }
}

function enlarged<T extends Int32Array | Uint16Array | Uint8Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}
