/**
 * Slots for medium transfers, used in turn: the n-th medium chunk of a connection goes into slot n modulo their number. The owner gives them
 * back in the order of use, by a cumulative limit; one that is free earlier than those before it is held back.
 */

/** The owner's side. */
export class OwnSlots {
  readonly #held: boolean[];
  /** Chunks that came, and those whose slots are free again, from the first on. */
  #used = 0;
  #released = 0;
  #advertised: number;

  constructor(slots: number) {
    this.#held = Array(slots).fill(false);
    this.#advertised = 0;
  }

  /** What the peer may have written, for the next header. */
  advertise(): number {
    this.#advertised = this.limit;
    return this.limit;
  }

  /** How many slots the writer may have used, modulo 2^32. */
  get limit(): number {
    return (this.#released + this.#held.length) >>> 0;
  }

  /** Slots are free that the peer does not know of. */
  get grantWanted(): boolean {
    return this.#advertised !== this.limit;
  }

  /** The peer has written a chunk; its slot, or undefined when it had none to write to. */
  onWritten(): number | undefined {
    if ((this.#used - this.#released) >>> 0 >= this.#held.length) return undefined;
    const slot = this.#used % this.#held.length;
    this.#held[slot] = true;
    this.#used = (this.#used + 1) >>> 0;
    return slot;
  }

  /** The slot has been read; its turn may come again. */
  release(slot: number): void {
    this.#held[slot] = false;
    while (this.#released !== this.#used && !this.#held[this.#released % this.#held.length]) {
      this.#released = (this.#released + 1) >>> 0;
    }
  }
}

/** The writer's side. */
export class PeerSlots {
  readonly #slots: number;
  #used = 0;
  #limit = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** Whether a slot may be used now. */
  get available(): boolean {
    return ((this.#limit - this.#used) | 0) > 0;
  }

  /** The next slot. */
  take(): number {
    const slot = this.#used % this.#slots;
    this.#used = (this.#used + 1) >>> 0;
    return slot;
  }

  /** False for a limit that goes back, or exceeds what there is. */
  onLimit(limit: number): boolean {
    const isBackwards = ((limit - this.#limit) | 0) < 0;
    if (isBackwards || ((limit - this.#used) | 0) > this.#slots) return false;
    this.#limit = limit;
    return true;
  }
}
