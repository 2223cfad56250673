/**
 * Reuses registered memory of one connection: a registration is a NIC command, which to a NIC in another thread costs
 * two wake-ups.
 */

import type { Connection } from 'rocev2/internal/cm';
import { Access, type MemoryRegion } from 'rocev2/internal/verbs';

const KEPT_MAX = 16;
const KEPT_BYTES_MAX = 4 << 20;

export class RegionCache {
  readonly #connection: Connection;
  readonly #access: number;
  readonly #lowest: number;
  readonly #free: MemoryRegion[] = [];
  readonly #all = new Set<MemoryRegion>();
  #freeBytes = 0;

  /** `lowest`: bytes of the shortest regions, so that messages of all lengths share them. */
  constructor(connection: Connection, access: number, lowest: number) {
    this.#connection = connection;
    this.#access = access;
    this.#lowest = lowest;
  }

  takeFree(bytes: number): MemoryRegion | undefined {
    let best = -1;
    for (const [k, { length }] of this.#free.entries())
      if (length >= bytes && (best < 0 || length < this.#free[best].length)) best = k;
    if (best < 0) return undefined;
    const [region] = this.#free.splice(best, 1);
    this.#freeBytes -= region.length;
    return region;
  }

  async take(bytes: number): Promise<MemoryRegion> {
    const free = this.takeFree(bytes);
    if (free !== undefined) return free;
    const length = Math.max(this.#lowest, this.#connection.device.scratch.lengthFor(bytes));
    const region = await this.#connection.registerScratch(length, this.#access);
    // The peer may read all of it, at any time: what other connections left there is not for it. Later it has what this
    // peer was sent.
    if ((this.#access & Access.REMOTE_READ) !== 0) region.bytes.fill(0);
    this.#all.add(region);
    return region;
  }

  give(region: MemoryRegion): void {
    if (!this.#all.has(region)) return;
    if (this.#free.length < KEPT_MAX && this.#freeBytes + region.length <= KEPT_BYTES_MAX) {
      this.#free.push(region);
      this.#freeBytes += region.length;
      return;
    }
    this.#all.delete(region);
    const { bytes } = region;
    const { scratch } = this.#connection.device;
    region.close().then(
      () => scratch.give(bytes),
      () => {}, // It is freed with the connection.
    );
  }

  /** The connection is closed: the NIC has dropped all of them. */
  dispose(): void {
    for (const { bytes } of this.#all) this.#connection.device.scratch.give(bytes);
    this.#all.clear();
    this.#free.length = 0;
  }
}
