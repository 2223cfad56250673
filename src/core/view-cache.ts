/**
 * The only fast copy JavaScript has between arrays takes a view as its source, and making one costs as much as copying
 * several hundred bytes and leaves garbage. Streams take the same views over and over.
 */

import { isShared } from './shared-buffers.js';

const VIEWS_MAX = 8192;

/** At most 8,192 views of one array; a collision replaces the older one. */
export class ViewCache {
  readonly isShared: boolean;
  readonly #bytes: Uint8Array;
  readonly #views: Uint8Array[] = [];
  readonly #starts: number[] = [];
  #words: Int32Array | undefined;
  #longs: BigUint64Array | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.isShared = isShared(bytes.buffer);
  }

  /** Empty where they do not begin at a multiple of four. */
  get words(): Int32Array {
    this.#words ??= wordsOf(this.#bytes);
    return this.#words;
  }

  /** Undefined where they do not begin at a multiple of eight. */
  get longs(): BigUint64Array | undefined {
    const { buffer, byteOffset, length } = this.#bytes;
    if (byteOffset % 8 !== 0) return undefined;
    this.#longs ??= new BigUint64Array(buffer, byteOffset, Math.floor(length / 8));
    return this.#longs;
  }

  view(start: number, length: number): Uint8Array {
    // Neighbouring pieces of one length take neighbouring places, so that a stream does not evict itself; every other
    // place, so that whole packets and the payloads inside them, 16 bytes shorter, do not evict each other.
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
export const NO_WORDS: Int32Array = new Int32Array(0);

function wordsOf({ buffer, byteOffset, length }: Uint8Array): Int32Array {
  return byteOffset % 4 === 0 ? new Int32Array(buffer, byteOffset, length >>> 2) : NO_WORDS;
}

/** Caches of long-lived arrays, and the last one used: streams come from one array at a time. */
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

let lastTarget: Uint8Array = EMPTY;
let lastTargetWords = NO_WORDS;

export function sourceWords(bytes: Uint8Array): Int32Array {
  return cacheOf(bytes).words;
}

export function targetWords(bytes: Uint8Array): Int32Array {
  if (bytes !== lastTarget) {
    lastTarget = bytes;
    lastTargetWords = knownCache(bytes).words;
  }
  return lastTargetWords;
}
