/**
 * Which of several owners has a key: rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase
 * hit rates", IEEE/ACM ToN 1998). Each owner draws a number for the key, and the highest has it. With one owner more,
 * it takes 1/n of the keys from all others; no other key moves. All readers with the same set of names agree, in any
 * order.
 */

import { murmur3 } from './key-hash.js';

export class Rendezvous {
  readonly #seeds: readonly number[];

  constructor(names: readonly string[]) {
    this.#seeds = names.map((name) => murmur3(Buffer.from(name), 0));
  }

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
