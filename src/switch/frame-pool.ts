/**
 * The switch's packet buffer: frames in numbered slots of equal size. Slots are made when first needed and used again for ever, so that
 * a switch in its stride allocates nothing.
 */

import { copyBytes } from '../core/bytes.js';

/** A jumbo frame of 9216 bytes payload with Ethernet header and one 802.1Q tag. */
export const FRAME_BYTES_MAX = 9234;

export class FramePool {
  readonly #slotsMax: number;
  readonly #slots: Uint8Array[] = [];
  readonly #lengths: number[] = [];
  readonly #free: number[] = [];
  /** Cached, made anew only when a slot's length differs from its last use. */
  readonly #views: Uint8Array[] = [];

  constructor(slotsMax: number) {
    this.#slotsMax = slotsMax;
  }

  get used(): number {
    return this.#slots.length - this.#free.length;
  }

  /** Copies a frame of at most FRAME_BYTES_MAX bytes into a slot; -1 when the buffer is full. */
  store(bytes: Uint8Array, offset: number, length: number): number {
    let slot = this.#free.pop();
    if (slot === undefined) {
      slot = this.#slots.length;
      if (slot === this.#slotsMax) return -1;
      this.#slots.push(new Uint8Array(FRAME_BYTES_MAX));
      this.#views.push(this.#slots[slot].subarray(0, 0));
    }
    copyBytes(bytes, offset, this.#slots[slot], 0, length);
    this.#lengths[slot] = length;
    return slot;
  }

  length(slot: number): number {
    return this.#lengths[slot];
  }

  /** The frame in the slot; valid until the slot is released. */
  view(slot: number): Uint8Array {
    const length = this.#lengths[slot];
    if (this.#views[slot].length !== length) this.#views[slot] = this.#slots[slot].subarray(0, length);
    return this.#views[slot];
  }

  release(slot: number): void {
    this.#free.push(slot);
  }
}
