/** Resolved once per message, used once per packet. */

import { type KeyTable, MEMORY_OK } from './key-table.js';
import { MemoryRange } from './memory-range.js';

/**
 * The flat list that a work request carries (see ring/work-queue.ts); named here by shape so that memory does not
 * import rings.
 */
interface FlatSgeList {
  readonly count: number;
  readonly totalBytes: number;
  readonly high: Uint32Array;
  readonly low: Uint32Array;
  readonly lengths: Uint32Array;
  readonly lkeys: Uint32Array;
}

/** Made once per queue and loaded again for every message. */
export class SgeCursor {
  readonly #ranges: MemoryRange[] = [];
  readonly #lengths: number[] = [];
  #count = 0;
  totalBytes = 0;
  /** Where in the range of the last {@link rangeOf} its bytes begin. */
  rangeSkip = 0;

  /** Checks every element (`required`: 0 to read, LOCAL_WRITE to write). False when one of them is not allowed. */
  load(list: FlatSgeList, keys: KeyTable, pd: number, required: number): boolean {
    this.#count = 0;
    this.totalBytes = list.totalBytes;
    for (let i = 0; i < list.count; i++) {
      const length = list.lengths[i];
      if (length === 0) continue; // A zero-length element is never dereferenced, so its lkey need not be valid.
      if (this.#ranges.length === this.#count) this.#ranges.push(new MemoryRange());
      const range = this.#ranges[this.#count];
      const verdict = keys.resolve(list.lkeys[i], pd, -1, list.high[i], list.low[i], length, required, range);
      if (verdict !== MEMORY_OK) return false;
      this.#lengths[this.#count] = length;
      this.#count++;
    }
    return true;
  }

  /** Points the cursor at bytes that need no key: inline data, which is in the queue itself. */
  loadPlain(bytes: Uint8Array, offset: number, length: number): void {
    if (this.#ranges.length === 0) this.#ranges.push(new MemoryRange());
    this.#ranges[0].setPlain(bytes, offset);
    this.#lengths[0] = length;
    this.#count = 1;
    this.totalBytes = length;
  }

  get stillValid(): boolean {
    for (let i = 0; i < this.#count; i++) if (!this.#ranges[i].stillValid) return false;
    return true;
  }

  /** Undefined if they are in several. */
  rangeOf(offset: number, length: number): MemoryRange | undefined {
    let skip = offset;
    for (let i = 0; i < this.#count; i++) {
      const size = this.#lengths[i];
      if (skip < size) {
        this.rangeSkip = skip;
        return skip + length <= size ? this.#ranges[i] : undefined;
      }
      skip -= size;
    }
    return undefined;
  }

  gather(offset: number, length: number, to: Uint8Array, toOffset: number): void {
    let skip = offset;
    let left = length;
    let target = toOffset;
    for (let i = 0; i < this.#count && left > 0; i++) {
      const size = this.#lengths[i];
      if (skip >= size) {
        skip -= size;
        continue;
      }
      const part = Math.min(size - skip, left);
      const range = this.#ranges[i];
      range.copyTo(skip, part, to, target);
      skip = 0;
      left -= part;
      target += part;
    }
  }

  scatter(offset: number, length: number, from: Uint8Array, fromOffset: number): void {
    let skip = offset;
    let left = length;
    let source = fromOffset;
    for (let i = 0; i < this.#count && left > 0; i++) {
      const size = this.#lengths[i];
      if (skip >= size) {
        skip -= size;
        continue;
      }
      const part = Math.min(size - skip, left);
      this.#ranges[i].place(skip, from, source, part, skip + part); // The message may be shorter than its buffers.
      skip = 0;
      left -= part;
      source += part;
    }
  }
}
