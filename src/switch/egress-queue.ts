/** A bounded first-in first-out queue of slot numbers: one egress port's waiting frames. */

export class EgressQueue {
  readonly #ring: Uint32Array;
  #head = 0;
  #length = 0;

  constructor(capacity: number) {
    this.#ring = new Uint32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  get full(): boolean {
    return this.#length === this.#ring.length;
  }

  /** Only when not full. */
  push(slot: number): void {
    this.#ring[(this.#head + this.#length++) % this.#ring.length] = slot;
  }

  /** The oldest slot, or -1. */
  shift(): number {
    if (this.#length === 0) return -1;
    const slot = this.#ring[this.#head];
    this.#head = (this.#head + 1) % this.#ring.length;
    this.#length--;
    return slot;
  }
}
