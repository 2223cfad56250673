/**
 * Sub-views of one byte array, remembered. The only fast copy JavaScript has between arrays takes a view as its source, and making one
 * costs as much as copying several hundred bytes and leaves garbage. Streams take the same views over and over.
 */

/** Views remembered an array; a power of two. At 4 KiB each they cover 16 MiB. */
const VIEWS_MAX = 4096;

export class ViewCache {
  readonly #bytes: Uint8Array;
  readonly #views: Uint8Array[] = [];
  readonly #starts: number[] = [];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** `bytes[start, start + length)`, `length` > 0. */
  view(start: number, length: number): Uint8Array {
    // Neighbouring pieces of one length take neighbouring places, so that a stream does not evict itself.
    const place = Math.floor(start / length) & (VIEWS_MAX - 1);
    const known = this.#views[place];
    if (known !== undefined && this.#starts[place] === start && known.length === length) return known;
    const view = this.#bytes.subarray(start, start + length);
    // Arrays without holes stay fast.
    while (this.#views.length <= place) {
      this.#views.push(EMPTY);
      this.#starts.push(-1);
    }
    this.#views[place] = view;
    this.#starts[place] = start;
    return view;
  }
}

const EMPTY = new Uint8Array(0);
