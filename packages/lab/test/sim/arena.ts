/** Where a plan puts its buffers: one after another in a host's registered region, with guard bytes between them that nothing may touch. */

import type { Dice } from '../../../../test/support/dice.js';

/** Bytes of a host's region. */
export interface Range {
  readonly offset: number;
  readonly length: number;
}

const GUARD_BYTES_MAX = 40;

export class Arena {
  readonly #dice: Dice;
  #end = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** Bytes the region needs, the last guard included. */
  get bytes(): number {
    return this.#end + GUARD_BYTES_MAX;
  }

  take(length: number): Range {
    const offset = this.#end + this.#dice.int(1, GUARD_BYTES_MAX);
    this.#end = offset + length;
    return { offset, length };
  }

  /** Eight bytes at a multiple of eight, for atomics. */
  takeWord(): Range {
    const { offset } = this.take(16);
    return { offset: (offset + 7) & ~7, length: 8 };
  }

  /** `length` bytes in at most `partsMax` ranges; some of them may be empty. */
  takeParts(length: number, partsMax: number): Range[] {
    const parts = this.#dice.chance(0.5) ? 1 : this.#dice.int(1, partsMax);
    const ranges: Range[] = [];
    let left = length;
    for (let part = 1; part <= parts; part++) {
      const size = part === parts ? left : this.#dice.int(0, left);
      ranges.push(this.take(size));
      left -= size;
    }
    return ranges;
  }
}
