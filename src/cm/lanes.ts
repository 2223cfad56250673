/** Lanes: places in memory that is registered once, one for each operation in flight. More operations than lanes wait, first come, first served. */

import type { MemoryRegion } from '../verbs/memory-region.js';
import type { Connection } from './connection.js';

/** Lanes begin at multiples of it: results of atomics need 8, whole cache lines are faster. */
const ALIGNMENT = 64;

/** Memory for what operations of one connection read. It lives as long as the connection. */
export class Lanes {
  readonly #region: MemoryRegion;
  readonly #laneBytes: number;
  /** Empty as long as somebody waits. */
  readonly #free: number[];
  readonly #waiting: Array<(lane: number) => void> = [];

  private constructor(region: MemoryRegion, laneBytes: number, count: number) {
    this.#region = region;
    this.#laneBytes = laneBytes;
    this.#free = Array.from({ length: count }, (_, k) => k);
  }

  /** `count` lanes of `bytes` each. Rejects with ERR_ROCE_CLOSED when the connection is closed. */
  static async open(connection: Connection, bytes: number, count: number): Promise<Lanes> {
    const laneBytes = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    return new Lanes(await connection.register(count * laneBytes), laneBytes, count);
  }

  /** Does `work` with a lane: `at` is its offset in `region`. The lane is free again when the promise of `work` has settled. */
  use<T>(work: (region: MemoryRegion, at: number) => Promise<T>): Promise<T> {
    const lane = this.#free.pop();
    if (lane !== undefined) return this.#useLane(lane, work);
    return new Promise<number>((resolve) => this.#waiting.push(resolve)).then((given) => this.#useLane(given, work));
  }

  #useLane<T>(lane: number, work: (region: MemoryRegion, at: number) => Promise<T>): Promise<T> {
    return work(this.#region, lane * this.#laneBytes).then(
      (value) => {
        this.#give(lane);
        return value;
      },
      (error) => {
        this.#give(lane);
        throw error;
      },
    );
  }

  #give(lane: number): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(lane);
    else next(lane);
  }
}
