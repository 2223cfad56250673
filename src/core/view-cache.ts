/**
 * Sub-views of one byte array, remembered. The only fast copy JavaScript has between arrays takes a view as its source, and making one
 * costs as much as copying several hundred bytes and leaves garbage. Streams take the same views over and over.
 */

import { isShared } from './shared-memory.js';

/** Views remembered an array; a power of two. At 4 KiB each they cover 16 MiB. */
const VIEWS_MAX = 8192;

/** The views of one array that were asked for lately: at most 8,192, the older of two that fall on one place is made anew. */
export class ViewCache {
  /** Other threads may change the bytes at any time. */
  readonly isShared: boolean;
  readonly #bytes: Uint8Array;
  readonly #views: Uint8Array[] = [];
  readonly #starts: number[] = [];
  #words: Int32Array | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.isShared = isShared(bytes.buffer);
  }

  /** The same bytes as numbers of 32 bits, in the byte order of this machine. Empty where they do not begin at a multiple of four. */
  get words(): Int32Array {
    this.#words ??= wordsOf(this.#bytes);
    return this.#words;
  }

  /** `bytes[start, start + length)`, `length` > 0. */
  view(start: number, length: number): Uint8Array {
    // Neighbouring pieces of one length take neighbouring places, so that a stream does not evict itself; every other place, so that
    // whole packets and the payloads inside them, 16 bytes shorter, do not evict each other.
    const place = (2 * Math.floor(start / length) + ((length >>> 4) & 1)) & (VIEWS_MAX - 1);
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
/** The words of an array that has none. */
export const NO_WORDS: Int32Array = new Int32Array(0);

function wordsOf({ buffer, byteOffset, length }: Uint8Array): Int32Array {
  return byteOffset % 4 === 0 ? new Int32Array(buffer, byteOffset, length >>> 2) : NO_WORDS;
}

/** The caches of arrays that live long, and the one that was asked last: streams come from one array at a time. */
const caches = new WeakMap<Uint8Array, ViewCache>();
let lastBytes: Uint8Array = EMPTY;
let lastCache = new ViewCache(EMPTY);

function knownCache(bytes: Uint8Array): ViewCache {
  let cache = caches.get(bytes);
  if (cache === undefined) {
    cache = new ViewCache(bytes);
    caches.set(bytes, cache);
  }
  return cache;
}

function cacheOf(bytes: Uint8Array): ViewCache {
  if (bytes !== lastBytes) {
    lastBytes = bytes;
    lastCache = knownCache(bytes);
  }
  return lastCache;
}

/** `bytes[start, start + length)`, `length` > 0, of an array that lives long: a slab, not a datagram's own buffer. */
export function rememberedView(bytes: Uint8Array, start: number, length: number): Uint8Array {
  return cacheOf(bytes).view(start, length);
}

/** The array that words were asked of last, to be written to. */
let lastTarget: Uint8Array = EMPTY;
let lastTargetWords = NO_WORDS;

/** {@link ViewCache.words} of an array that lives long. What is read and what is written take turns, so that each has an array that was asked last. */
export function sourceWords(bytes: Uint8Array): Int32Array {
  return cacheOf(bytes).words;
}

/** The same of an array that is written to. */
export function targetWords(bytes: Uint8Array): Int32Array {
  if (bytes !== lastTarget) {
    lastTarget = bytes;
    lastTargetWords = knownCache(bytes).words;
  }
  return lastTargetWords;
}
