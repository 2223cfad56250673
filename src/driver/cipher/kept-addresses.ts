/**
 * Caches addresses passed to native code: V8 makes a new heap object each time an address is computed or read from a
 * number field.
 */

import { koffiPackage } from '../../dgram-ext/libc.js';

const SLOTS = 2048;
const SPREAD = 0x9e3779b1;
const SPREAD_SHIFT = 32 - Math.log2(SLOTS);

/** Objects, which a list of numbers would not keep: a stored object is returned as the same one. */
type Kept = Array<number | undefined>;

class AddressSlots {
  readonly base: number;
  readonly offsets = new Int32Array(SLOTS).fill(-1);
  readonly addresses: Kept = new Array(SLOTS).fill(undefined);

  constructor(base: number) {
    this.base = base;
  }
}

/**
 * Arrays must be made over an ArrayBuffer, whose memory never moves; an address is good as long as its array is held.
 */
export class KeptAddresses {
  readonly #memcpy: (to: Uint8Array, from: Uint8Array, bytes: number) => number;
  readonly #ofArray = new WeakMap<Uint8Array, AddressSlots>();
  /** The two arrays that were asked for last: a packet goes from one into the other. */
  #first: Uint8Array | undefined;
  #firstSlots: AddressSlots | undefined;
  #second: Uint8Array | undefined;
  #secondSlots: AddressSlots | undefined;

  constructor() {
    this.#memcpy = koffiPackage().load(null).func('uintptr_t memcpy(void *, void *, size_t)');
  }

  start(bytes: Uint8Array): number {
    return this.#memcpy(bytes, bytes, 0);
  }

  of(bytes: Uint8Array, offset: number): number {
    const slots = this.#slotsOf(bytes);
    const place = Math.imul(offset, SPREAD) >>> SPREAD_SHIFT;
    if (slots.offsets[place] !== offset) {
      slots.addresses[place] = slots.base + offset;
      slots.offsets[place] = offset;
    }
    return slots.addresses[place]!;
  }

  #slotsOf(bytes: Uint8Array): AddressSlots {
    if (bytes === this.#first) return this.#firstSlots!;
    if (bytes === this.#second) return this.#secondSlots!;
    let slots = this.#ofArray.get(bytes);
    if (slots === undefined) {
      slots = new AddressSlots(this.start(bytes));
      this.#ofArray.set(bytes, slots);
    }
    this.#second = this.#first;
    this.#secondSlots = this.#firstSlots;
    this.#first = bytes;
    this.#firstSlots = slots;
    return slots;
  }
}

export function keptAddresses(base: number, offsets: readonly number[]): ReadonlyArray<number | undefined> {
  const kept: Kept = new Array(offsets.length + 1).fill(undefined);
  for (let i = 0; i < offsets.length; i++) kept[i] = base + offsets[i];
  return kept;
}

let ofThread: KeptAddresses | undefined;

export function threadAddresses(): KeptAddresses {
  ofThread ??= new KeptAddresses();
  return ofThread;
}
