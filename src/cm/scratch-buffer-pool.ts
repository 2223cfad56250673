/**
 * Buffers in memory that is registered once, one for each operation in flight. More operations than buffers wait, first
 * come, first served.
 */

import type { MemoryRegion } from '../verbs/memory-region.js';
import type { Connection } from './connection.js';

/** Buffers begin at multiples of it: results of atomics need 8, whole cache lines are faster. */
const ALIGNMENT = 64;

export class ScratchBufferPool {
  readonly #region: MemoryRegion;
  readonly #bufferBytes: number;
  readonly #free: number[];
  readonly #waiting: Array<(buffer: number) => void> = [];

  private constructor(region: MemoryRegion, bufferBytes: number, count: number) {
    this.#region = region;
    this.#bufferBytes = bufferBytes;
    this.#free = Array.from({ length: count }, (_, k) => k);
  }

  /** `count` buffers of `bytes` each. Rejects with ERR_ROCE_CLOSED when the connection is closed. */
  static async open(connection: Connection, bytes: number, count: number): Promise<ScratchBufferPool> {
    const bufferBytes = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    return new ScratchBufferPool(await connection.register(count * bufferBytes), bufferBytes, count);
  }

  /**
   * Does `work` with a buffer: `at` is its offset in `region`. The buffer is free again when the promise of `work` has
   * settled.
   */
  async use<T>(work: (region: MemoryRegion, at: number) => Promise<T>): Promise<T> {
    const buffer = this.#free.pop() ?? (await new Promise<number>((resolve) => this.#waiting.push(resolve)));
    try {
      return await work(this.#region, buffer * this.#bufferBytes);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(buffer);
      else next(buffer);
    }
  }
}
