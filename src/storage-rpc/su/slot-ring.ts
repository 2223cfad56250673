/**
 * Slots for medium transfers: chunk n goes into slot n modulo their number. They are released in order of use by a
 * cumulative limit.
 */

export class OwnSlots {
  readonly #held: boolean[];
  #used = 0;
  #released = 0;
  #advertised: number;

  constructor(slots: number) {
    this.#held = Array(slots).fill(false);
    this.#advertised = 0;
  }

  advertise(): number {
    this.#advertised = this.limit;
    return this.limit;
  }

  /** How many slots the writer may have used, modulo 2^32. */
  get limit(): number {
    return (this.#released + this.#held.length) >>> 0;
  }

  get grantWanted(): boolean {
    return this.#advertised !== this.limit;
  }

  onWritten(): number | undefined {
    if ((this.#used - this.#released) >>> 0 >= this.#held.length) return undefined;
    const slot = this.#used % this.#held.length;
    this.#held[slot] = true;
    this.#used = (this.#used + 1) >>> 0;
    return slot;
  }

  release(slot: number): void {
    this.#held[slot] = false;
    while (this.#released !== this.#used && !this.#held[this.#released % this.#held.length]) {
      this.#released = (this.#released + 1) >>> 0;
    }
  }
}

export class PeerSlots {
  readonly #slots: number;
  #used = 0;
  #limit = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  get available(): boolean {
    return ((this.#limit - this.#used) | 0) > 0;
  }

  take(): number {
    const slot = this.#used % this.#slots;
    this.#used = (this.#used + 1) >>> 0;
    return slot;
  }

  onLimit(limit: number): boolean {
    const isBackwards = ((limit - this.#limit) | 0) < 0;
    if (isBackwards || ((limit - this.#used) | 0) > this.#slots) return false;
    this.#limit = limit;
    return true;
  }
}
