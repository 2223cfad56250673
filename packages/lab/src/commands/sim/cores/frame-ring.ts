/**
 * Frames on their way from one thread of a divided run to another: a ring in shared memory with one writer and one reader. A record is the time of arrival, the number of the cable, the length of
 * the frame, and the bytes that are kept of it.
 *
 * Invariant: the reader sees a record whole or not at all; `written` and `read` count words of 8 bytes since the beginning, modulo 2^32.
 */

import { copyBytes, RoceError } from 'rocev2/internal/core';
import { type FrameStorage, keptBytes } from '../../../switch/frame-pool.js';

/** Takes a frame; the bytes are valid during the call. */
type FrameTaker = (cable: number, arrivalNs: number, bytes: Uint8Array, offset: number, length: number) => void;

const WORD = 8;
/** Cable and length; time of arrival. */
const HEAD_WORDS = 2;
const WRITTEN = 0;
const READ = 1;
/** In the place of a cable: the next record is at the beginning of the memory. */
const WRAP = -1;
/** A writer that waits looks so often whether the run has been given up. */
const LOOK_MS = 20;

/** The memory of a ring. `words` is a power of two. */
export interface RingMemory {
  /** Words written and read. */
  readonly counts: SharedArrayBuffer;
  /** The records. */
  readonly frames: SharedArrayBuffer;
}

/** Memory for so many bytes of frames, rounded up to a power of two. */
export function newRingMemory(bytes: number): RingMemory {
  const words = 2 ** Math.ceil(Math.log2(Math.max(64, bytes / WORD)));
  return { counts: new SharedArrayBuffer(2 * 4), frames: new SharedArrayBuffer(words * WORD) };
}

/** One end of a ring: the writer's or the reader's. */
export class FrameRing {
  readonly #counts: Int32Array;
  readonly #times: Float64Array;
  readonly #numbers: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #words: number;
  readonly #storage: FrameStorage | undefined;
  readonly #onFull: () => void;
  /** The writer's or the reader's own count. */
  #own = 0;
  /** What the other had counted when it was last looked at. */
  #other = 0;

  /**
   * `storage`: how much of each frame is kept. `onFull` is called again and again while a writer waits for room; it may take frames off other rings.
   */
  constructor({ counts, frames }: RingMemory, storage: FrameStorage | undefined, onFull: () => void = () => {}) {
    this.#counts = new Int32Array(counts);
    this.#times = new Float64Array(frames);
    this.#numbers = new Int32Array(frames);
    this.#bytes = new Uint8Array(frames);
    this.#words = frames.byteLength / WORD;
    this.#storage = storage;
    this.#onFull = onFull;
  }

  /** Appends a copy of a frame, and waits if there is no room. Throws ERR_ROCE_LIMIT for a frame that never has room. */
  write(cable: number, arrivalNs: number, bytes: Uint8Array, offset: number, length: number): void {
    const kept = keptBytes(length, this.#storage);
    const words = HEAD_WORDS + Math.ceil(kept / WORD);
    const start = this.#own & (this.#words - 1);
    const gap = start + words > this.#words ? this.#words - start : 0;
    this.#reserve(words + gap);
    if (gap > 0) {
      // A gap may be one word, which is half of a head: the cable stands in the first word.
      this.#numbers[2 * start] = WRAP;
      this.#own = (this.#own + gap) | 0;
    }
    const at = this.#own & (this.#words - 1);
    this.#numbers[2 * at] = cable;
    this.#numbers[2 * at + 1] = length;
    this.#times[at + 1] = arrivalNs;
    copyBytes(bytes, offset, this.#bytes, (at + HEAD_WORDS) * WORD, kept);
    this.#own = (this.#own + words) | 0;
    Atomics.store(this.#counts, WRITTEN, this.#own);
  }

  /** Hands over all frames that are there. */
  readAll(take: FrameTaker): void {
    const end = Atomics.load(this.#counts, WRITTEN);
    if (end === this.#own) return;
    while (this.#own !== end) {
      const at = this.#own & (this.#words - 1);
      const cable = this.#numbers[2 * at];
      if (cable === WRAP) {
        this.#own = (this.#own + this.#words - at) | 0;
        continue;
      }
      const length = this.#numbers[2 * at + 1];
      const kept = keptBytes(length, this.#storage);
      take(cable, this.#times[at + 1], this.#bytes, (at + HEAD_WORDS) * WORD, length);
      this.#own = (this.#own + HEAD_WORDS + Math.ceil(kept / WORD)) | 0;
    }
    Atomics.store(this.#counts, READ, end);
    Atomics.notify(this.#counts, READ);
  }

  #reserve(words: number): void {
    if (words > this.#words) {
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        `a frame of ${words * WORD} bytes has no room in a ring of ${this.#words * WORD}`,
      );
    }
    while (this.#room(this.#other) < words) {
      this.#other = Atomics.load(this.#counts, READ);
      if (this.#room(this.#other) >= words) return;
      this.#onFull();
      Atomics.wait(this.#counts, READ, this.#other, LOOK_MS);
    }
  }

  #room(read: number): number {
    return this.#words - ((this.#own - read) >>> 0);
  }
}
