/**
 * Memory of a client that is opened to the server piece by piece and request by request: REG_MR work requests map pieces, SEND_WITH_INV or
 * LOCAL_INV closes them again. Every mapping has a key it never had before in 256 uses, at a random index that all mappings of the slab
 * take in turn, so that a late packet with an old key does not meet a new mapping (storage rule e).
 */

import type { FastRegisterMemoryRegion } from '../../verbs/memory-region.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { Slab } from '../pool/buffer-pool.js';

export class MappableSlab implements Slab {
  readonly bytes: Uint8Array;
  readonly #pd: ProtectionDomain;
  /** The one unused for longest comes first. */
  readonly #unmapped: FastRegisterMemoryRegion[] = [];

  constructor(pd: ProtectionDomain, bytes: number) {
    this.#pd = pd;
    this.bytes = pd.device.allocate(bytes);
  }

  /** A region over this memory that is not mapped. */
  async take(): Promise<FastRegisterMemoryRegion> {
    return this.#unmapped.shift() ?? (await this.#pd.allocFastRegMr(this.bytes));
  }

  /** The region's mapping has ended. */
  putBack(region: FastRegisterMemoryRegion): void {
    this.#unmapped.push(region);
  }

  async close(): Promise<void> {
    for (const region of this.#unmapped.splice(0)) await region.close();
  }
}
