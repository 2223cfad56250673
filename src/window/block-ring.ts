/**
 * The ring of block ids on the side that fills blocks (sliding-window memory pool, protocol steps 3, 4 and 6). From
 * head to tail are the blocks in use, in the order of use; from tail to head are the free blocks.
 *
 * Invariant: every id of the pool is in exactly one of the two parts.
 */

import { invariant } from '../core/errors.js';

export class BlockRing {
  readonly #used: number[] = [];
  #free: number[] = [];

  get size(): number {
    return this.#used.length + this.#free.length;
  }

  get free(): number {
    return this.#free.length;
  }

  get inUse(): number {
    return this.#used.length;
  }

  take(): number {
    const id = this.#free.shift();
    invariant(id !== undefined, 'a block was taken from an exhausted window');
    this.#used.push(id);
    return id;
  }

  /** False, and nothing changes, if fewer are in use. */
  releaseCount(count: number): boolean {
    if (count < 1 || count > this.#used.length) return false;
    this.#free.push(...this.#used.splice(0, count));
    return true;
  }

  /** False, and nothing changes, if it is not in use. */
  releaseId(id: number): boolean {
    const place = this.#used.indexOf(id);
    if (place < 0) return false;
    this.#used.splice(place, 1);
    this.#free.push(id);
    return true;
  }

  /** New blocks, inserted at the tail: never between used ones, whose order acknowledgements by count rely on. */
  grow(firstId: number, count: number): void {
    this.#free = [...Array.from({ length: count }, (_, i) => firstId + i), ...this.#free];
  }
}
