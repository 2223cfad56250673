/**
 * Which of several owners has a key: rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM ToN 1998). Each
 * owner draws a number for the key, and the highest has it. With one owner more, it takes 1/n of the keys from all others; no other key moves. All who
 * know the same names agree, in whatever order they know them.
 */

import { murmur3 } from './key-hash.js';

/** Gives keys to owners by the names of these. */
export class Rendezvous {
  readonly #seeds: readonly number[];

  /** `names` are distinct. */
  constructor(names: readonly string[]) {
    this.#seeds = names.map((name) => murmur3(Buffer.from(name), 0));
  }

  /** The place of the owner among the names. Time grows with the number of owners. */
  ownerOf(key: Uint8Array): number {
    let owner = 0;
    let highest = -1;
    for (let k = 0; k < this.#seeds.length; k++) {
      const drawn = murmur3(key, this.#seeds[k]);
      if (drawn <= highest) continue;
      highest = drawn;
      owner = k;
    }
    return owner;
  }
}
