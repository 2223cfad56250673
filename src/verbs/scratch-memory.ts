/**
 * Reuses memory that the library registers for itself: shared memory's last reference is in the NIC's thread, whose
 * garbage collector rarely runs, and shared memory does not count as a reason to run.
 */

import { bufferOver } from '../core/buffer-over.js';

const KEPT_BYTES_MAX = 64 << 20;

/** Memory passed to `give` must be unreferenced: deregistered, and without a view held by a program. */
export class ScratchMemory {
  readonly #allocate: (bytes: number, populates: boolean) => Buffer;
  readonly #kept = new Map<number, Buffer[]>();
  #keptBytes = 0;

  constructor(allocate: (bytes: number, populates: boolean) => Buffer) {
    this.#allocate = allocate;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  lengthFor(bytes: number): number {
    return sizeClass(bytes);
  }

  /** With `populates: false` the memory may get its pages when they are first used: much of it may never be. */
  take(bytes: number, { populates = true }: { readonly populates?: boolean } = {}): Buffer {
    const length = sizeClass(bytes);
    const known = this.#kept.get(length)?.pop();
    if (known !== undefined) this.#keptBytes -= length;
    return (known ?? this.#allocate(length, populates)).subarray(0, bytes);
  }

  give({ buffer }: Buffer): void {
    const memory = bufferOver(buffer);
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
