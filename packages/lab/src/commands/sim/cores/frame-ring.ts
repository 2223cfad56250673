/**
 * A ring of frames in shared memory between two threads of a divided run, with one writer and one reader. A record is
 * arrival time, cable number, frame length and the kept bytes. The reader sees a record whole or not at all; `written`
 * and `read` count 8-byte words, modulo 2^32.
 */

import { copyBytes, RoceError } from 'rocev2/internal/core';
import { type FrameStorage, keptBytes } from '../../../switch/frame-pool.js';

type FrameTaker = (cable: number, arrivalNs: number, bytes: Uint8Array, offset: number, length: number) => void;

const WORD = 8;
const HEAD_WORDS = 2;
const WRITTEN = 0;
const READ = 1;
const WRAP = -1;
const LOOK_MS = 20;

export interface RingMemory {
  readonly counts: SharedArrayBuffer;
  readonly frames: SharedArrayBuffer;
}

export function newRingMemory(bytes: number): RingMemory {
  const words = 2 ** Math.ceil(Math.log2(Math.max(64, bytes / WORD)));
  return { counts: new SharedArrayBuffer(2 * 4), frames: new SharedArrayBuffer(words * WORD) };
}

export class FrameRing {
  readonly #counts: Int32Array;
  readonly #times: Float64Array;
  readonly #numbers: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #words: number;
  readonly #storage: FrameStorage | undefined;
  readonly #onFull: () => void;
  #own = 0;
  #other = 0;

  /** `onFull` is called again and again while a writer waits for room; it may take frames off other rings. */
  constructor({ counts, frames }: RingMemory, storage: FrameStorage | undefined, onFull: () => void = () => {}) {
    this.#counts = new Int32Array(counts);
    this.#times = new Float64Array(frames);
    this.#numbers = new Int32Array(frames);
    this.#bytes = new Uint8Array(frames);
    this.#words = frames.byteLength / WORD;
    this.#storage = storage;
    this.#onFull = onFull;
  }

  write(cable: number, arrivalNs: number, bytes: Uint8Array, offset: number, length: number): void {
    const kept = keptBytes(length, this.#storage);
    const words = HEAD_WORDS + Math.ceil(kept / WORD);
    const start = this.#own & (this.#words - 1);
    const gap = start + words > this.#words ? this.#words - start : 0;
    this.#reserve(words + gap);
    if (gap > 0) {
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
