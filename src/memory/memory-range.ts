import { copyBytes, copyWords, wordsToCopy } from '../core/bytes.js';
import { sourceWords, targetWords, type ViewCache } from '../core/view-cache.js';
import { letsPeersWrite, type NicMemoryRegion, type NicMemoryWindow } from './keyed-range.js';

const SHORT_COPY_BYTES = 64;

const NEVER_VALID = { valid: false, generation: 0 } as const;
const ALWAYS_VALID = { valid: true, generation: 0 } as const;

const NO_BYTES = new Uint8Array(0);

export class MemoryRange {
  bytes: Uint8Array = NO_BYTES;
  offset = 0;
  #views: ViewCache | undefined;
  #owner: { readonly valid: boolean; readonly generation: number } = NEVER_VALID;
  #generation = 0;
  #letsPeersWrite = false;
  #arrayBytes = 0;
  /** The region, if its bytes are outside this process; `offset` is their address there. */
  #foreign: NicMemoryRegion | undefined;
  #foreignBytes = 0;

  /** Points it at bytes of a region, or of the region under a window, whose validity it follows from now on. */
  set(owner: NicMemoryRegion | NicMemoryWindow, bytes: Uint8Array, offset: number, views: ViewCache): void {
    this.#views = views;
    this.#owner = owner;
    this.#generation = owner.generation;
    this.#letsPeersWrite = letsPeersWrite(owner.access);
    this.bytes = bytes;
    this.offset = offset;
    this.#arrayBytes = bytes.length;
    this.#foreign = undefined;
  }

  /** The same for a region whose bytes are outside this process. */
  setForeign(
    owner: NicMemoryRegion | NicMemoryWindow,
    region: NicMemoryRegion,
    offset: number,
    lengthBytes: number,
  ): void {
    this.#views = undefined;
    this.#owner = owner;
    this.#generation = owner.generation;
    this.bytes = NO_BYTES;
    this.offset = region.foreignAddress + offset;
    this.#arrayBytes = 0;
    this.#foreign = region;
    this.#foreignBytes = lengthBytes;
  }

  setPlain(bytes: Uint8Array, offset: number): void {
    this.#views = undefined;
    this.#owner = ALWAYS_VALID;
    this.#generation = ALWAYS_VALID.generation;
    this.bytes = bytes;
    this.offset = offset;
    this.#arrayBytes = bytes.length;
    this.#foreign = undefined;
  }

  copyFrom(other: MemoryRange): void {
    this.#views = other.#views;
    this.#owner = other.#owner;
    this.#generation = other.#generation;
    this.#letsPeersWrite = other.#letsPeersWrite;
    this.bytes = other.bytes;
    this.offset = other.offset;
    this.#arrayBytes = other.#arrayBytes;
    this.#foreign = other.#foreign;
    this.#foreignBytes = other.#foreignBytes;
  }

  /** Registered memory that no other thread can change. */
  get isOfThisThread(): boolean {
    return this.#views !== undefined && !this.#views.isShared;
  }

  /** Registered memory that no peer can change; only the program can, and it may not while the NIC sends it. */
  get isOfThisProgram(): boolean {
    return this.#views !== undefined && !this.#letsPeersWrite;
  }

  /** The words of memory that other threads or processes reach, and the place of the range; else undefined. */
  sharedLongs(): { readonly longs: BigUint64Array; readonly index: number } | undefined {
    const views = this.#views;
    if (views === undefined || !views.isShared || this.offset % 8 !== 0) return undefined;
    const { longs } = views;
    return longs && { longs, index: this.offset / 8 };
  }

  /** Bytes outside this process that cannot be read are 0, and {@link stillValid} is false from then on. */
  copyTo(skip: number, length: number, to: Uint8Array, toOffset: number): void {
    const start = this.offset + skip;
    const foreign = this.#foreign;
    if (foreign !== undefined) {
      const follows = this.#foreignBytes - skip - length;
      if (foreign.valid && foreign.foreign!.read(start, length, to, toOffset, follows)) return;
      foreign.valid = false;
      to.fill(0, toOffset, toOffset + length);
      return;
    }
    const views = this.#views;
    if (length <= SHORT_COPY_BYTES) {
      const words = views === undefined ? sourceWords(this.bytes) : views.words;
      if (copyWords(words, start, targetWords(to), toOffset, length)) return;
    }
    if (views === undefined || length <= SHORT_COPY_BYTES) copyBytes(this.bytes, start, to, toOffset, length);
    else to.set(views.view(start, length), toOffset);
  }

  /**
   * Where bytes outside this process cannot be written, {@link stillValid} is false from then on. `endBytes`: where in
   * the range the message ends.
   */
  place(skip: number, from: Uint8Array, fromOffset: number, length: number, endBytes = this.#foreignBytes): void {
    const start = this.offset + skip;
    const foreign = this.#foreign;
    if (foreign !== undefined) {
      const follows = endBytes - skip - length;
      if (!foreign.valid || !foreign.foreign!.write(start, from, fromOffset, length, follows, foreign)) {
        foreign.valid = false;
      }
      return;
    }
    const views = this.#views;
    const isShort = length <= SHORT_COPY_BYTES && views !== undefined;
    if (isShort && copyWords(wordsToCopy(from), fromOffset, views.words, start, length)) return;
    copyBytes(from, fromOffset, this.bytes, start, length);
  }

  /**
   * False once the region or window was deregistered, invalidated or bound again, or the program gave its memory to
   * another thread, which leaves an empty array, or an access outside this process has failed: messages of many packets
   * ask before each one.
   */
  get stillValid(): boolean {
    const owner = this.#owner;
    if (this.#foreign?.valid === false) return false;
    return owner.valid && owner.generation === this.#generation && this.bytes.length >= this.#arrayBytes;
  }
}
