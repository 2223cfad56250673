/**
 * Memory that the library itself registers, uses and no longer needs, kept for the next use of the same size. Shared memory has to be reused: its last
 * reference lies in the NIC's thread, whose collector has nothing to do for hours, and shared memory does not count as a reason to run.
 */

/** Bytes kept at most; more is left to the collector. */
const KEPT_BYTES_MAX = 64 << 20;

/** Buffers by their length. What `give` takes must be out of everybody's hands: the NIC has forgotten it, and no program was given a view of it. */
export class ScratchMemory {
  readonly #allocate: (bytes: number) => Buffer;
  readonly #kept = new Map<number, Buffer[]>();
  #keptBytes = 0;

  /** `allocate` makes memory that the NIC reaches. */
  constructor(allocate: (bytes: number) => Buffer) {
    this.#allocate = allocate;
  }

  /** Bytes that wait for their next use. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Bytes of the memory that {@link take} finds `bytes` in: what comes to the same shares it. */
  lengthFor(bytes: number): number {
    return sizeClass(bytes);
  }

  /** `bytes` of memory, with anything in it. */
  take(bytes: number): Buffer {
    const length = sizeClass(bytes);
    const known = this.#kept.get(length)?.pop();
    if (known !== undefined) this.#keptBytes -= length;
    return (known ?? this.#allocate(length)).subarray(0, bytes);
  }

  /** Gives back what {@link take} gave. */
  give({ buffer }: Buffer): void {
    const memory = Buffer.from(buffer);
    const { length } = memory;
    if (this.#keptBytes + length > KEPT_BYTES_MAX) return;
    this.#keptBytes += length;
    const same = this.#kept.get(length);
    if (same === undefined) this.#kept.set(length, [memory]);
    else same.push(memory);
  }
}

/** Powers of two, so that messages of all lengths share their buffers; from 64 bytes on. */
function sizeClass(bytes: number): number {
  return Math.max(64, 2 ** Math.ceil(Math.log2(Math.max(bytes, 1))));
}
