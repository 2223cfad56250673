/** Lanes: places in memory that is registered once, one for each operation in flight. More operations than lanes wait, first come, first served. */

import { Permits } from '../core/permits.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { Connection } from './connection.js';

/** Lanes begin at multiples of it: results of atomics need 8, whole cache lines are faster. */
const ALIGNMENT = 64;

/** Memory for what operations of one connection read. It lives as long as the connection. */
export class Lanes {
  readonly #region: MemoryRegion;
  readonly #laneBytes: number;
  readonly #free: number[];
  readonly #places: Permits;

  private constructor(region: MemoryRegion, laneBytes: number, count: number) {
    this.#region = region;
    this.#laneBytes = laneBytes;
    this.#free = Array.from({ length: count }, (_, k) => k);
    this.#places = new Permits(count);
  }

  /** `count` lanes of `bytes` each. Rejects with ERR_ROCE_CLOSED when the connection is closed. */
  static async open(connection: Connection, bytes: number, count: number): Promise<Lanes> {
    const laneBytes = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    return new Lanes(await connection.register(count * laneBytes), laneBytes, count);
  }

  /** Does `work` with a lane: `at` is its offset in `region`. The lane is free again when the promise of `work` has settled. */
  async use<T>(work: (region: MemoryRegion, at: number) => Promise<T>): Promise<T> {
    await this.#places.take(1);
    const lane = this.#free.pop()!;
    try {
      return await work(this.#region, lane * this.#laneBytes);
    } finally {
      this.#free.push(lane);
      this.#places.give(1);
    }
  }
}
