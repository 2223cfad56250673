/** Bytes at virtual addresses, as copies between mapped memory and memory of the program use them. */

import { copyBytes, copyWords } from '../../core/bytes.js';
import { U32 } from '../../core/u64.js';
import { ViewCache } from '../../core/view-cache.js';

const SHORT_COPY_BYTES = 64;
const NOT_HERE = -1;
/** Halves of one address: storing a bigint takes 5 ns, arithmetic with one 50 and leaves garbage. */
const address = new BigUint64Array(1);
const halves = new Uint32Array(address.buffer);

export class CopyView {
  readonly bytes: Uint8Array;
  readonly #views: ViewCache;
  readonly #baseHigh: number;
  readonly #baseLow: number;

  /** The address of the first byte is in two unsigned halves. Little-endian systems only. */
  constructor(bytes: Uint8Array, baseHigh: number, baseLow: number) {
    this.bytes = bytes;
    this.#views = new ViewCache(bytes);
    this.#baseHigh = baseHigh;
    this.#baseLow = baseLow;
  }

  /**
   * Where [va, va + length) begins in {@link bytes}; -1 if it is not inside, or `length` is no whole number above 0.
   */
  offsetOf(va: bigint, length: number): number {
    address[0] = va;
    const offset = (halves[1] - this.#baseHigh) * U32 + (halves[0] - this.#baseLow);
    const isInside = offset >= 0 && length > 0 && Number.isInteger(length) && length <= this.bytes.length - offset;
    return isInside ? offset : NOT_HERE;
  }

  /** The 64-bit words; undefined where they are not aligned. */
  get longs(): BigUint64Array | undefined {
    return this.#views.longs;
  }

  /** Copies `length` bytes from `offset` of this view to `toOffset` of the other; both have been checked. */
  copyTo(offset: number, to: CopyView, toOffset: number, length: number): void {
    if (length > SHORT_COPY_BYTES) {
      to.bytes.set(this.#views.view(offset, length), toOffset);
      return;
    }
    if (!copyWords(this.#views.words, offset, to.#views.words, toOffset, length))
      copyBytes(this.bytes, offset, to.bytes, toOffset, length);
  }
}
