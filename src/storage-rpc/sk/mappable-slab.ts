/**
 * Memory of a client that is opened to the server piece by piece and request by request: REG_MR work requests map pieces, SEND_WITH_INV or
 * LOCAL_INV closes them again. A mapping's key has a random index, of which a slab has several that take turns, and 8 bits that change with
 * every use: a late packet with an old key does not meet a new mapping before the keys of {@link REGIONS_MIN} x 256 others (storage rule e).
 */

import type { FastRegisterMemoryRegion } from '../../verbs/memory-region.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { Slab } from '../pool/buffer-pool.js';

const REGIONS_MIN = 16;

/** Memory of which pieces are opened and closed by work requests. */
export class MappableSlab implements Slab {
  readonly bytes: Uint8Array;
  readonly #pd: ProtectionDomain;
  /** The one unused for longest comes first. */
  readonly #unmapped: FastRegisterMemoryRegion[] = [];

  private constructor(pd: ProtectionDomain, bytes: Uint8Array) {
    this.#pd = pd;
    this.bytes = bytes;
  }

  /** Allocates so many bytes, and regions to map them by. */
  static create(pd: ProtectionDomain, bytes: number): Promise<MappableSlab> {
    return MappableSlab.over(pd, pd.device.allocate(bytes));
  }

  /** The same for memory that is there already, which the device reaches. */
  static async over(pd: ProtectionDomain, bytes: Uint8Array): Promise<MappableSlab> {
    const slab = new MappableSlab(pd, bytes);
    for (let i = 0; i < REGIONS_MIN; i++) slab.putBack(await pd.allocFastRegMr(slab.bytes));
    return slab;
  }

  /** A region over this memory that is not mapped. */
  async take(): Promise<FastRegisterMemoryRegion> {
    return this.takeNow() ?? (await this.#pd.allocFastRegMr(this.bytes));
  }

  /** The same, of those that there are; undefined: all of them are mapped. */
  takeNow(): FastRegisterMemoryRegion | undefined {
    return this.#unmapped.shift();
  }

  /** The region's mapping has ended. */
  putBack(region: FastRegisterMemoryRegion): void {
    this.#unmapped.push(region);
  }

  async close(): Promise<void> {
    for (const region of this.#unmapped.splice(0)) await region.close();
  }
}
