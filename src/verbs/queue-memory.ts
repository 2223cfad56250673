/**
 * Reuses the memory of closed queue pairs. The garbage collector does not count shared memory, so a server whose peers
 * come and go would otherwise hold the rings of hundreds of them.
 */

const KEPT_BYTES_MAX = 64 << 20;

/** Memory passed to `give` must no longer be attached. */
export class QueueMemory {
  readonly #allocate: (bytes: number) => ArrayBufferLike;
  readonly #kept = new Map<number, ArrayBufferLike[]>();
  #keptBytes = 0;

  constructor(allocate: (bytes: number) => ArrayBufferLike) {
    this.#allocate = allocate;
  }

  /** Zeroed memory of exactly this length. */
  readonly take = (bytes: number): ArrayBufferLike => {
    const known = this.#kept.get(bytes)?.pop();
    if (known === undefined) return this.#allocate(bytes);
    this.#keptBytes -= bytes;
    new Uint8Array(known).fill(0);
    return known;
  };

  give(memory: ArrayBufferLike): void {
    const { byteLength } = memory;
    if (this.#keptBytes + byteLength > KEPT_BYTES_MAX) return;
    this.#keptBytes += byteLength;
    const same = this.#kept.get(byteLength);
    if (same === undefined) this.#kept.set(byteLength, [memory]);
    else same.push(memory);
  }
}
