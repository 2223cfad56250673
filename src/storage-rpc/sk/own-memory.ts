/**
 * Program memory used in place, without a copy through the pool: registered once per connection, opened piecewise per
 * request.
 */

import { RoceError } from '../../core/errors.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import { MappableSlab } from './mappable-slab.js';

interface Memory {
  readonly bytes: Uint8Array;
  readonly slabs: Map<ProtectionDomain, Promise<MappableSlab>>;
}

export class OwnMemory {
  readonly #memories = new Map<ArrayBufferLike, Memory>();

  /** It has its buffer to itself. */
  add(bytes: Uint8Array): void {
    this.#memories.set(bytes.buffer, { bytes, slabs: new Map() });
  }

  async remove(bytes: Uint8Array): Promise<void> {
    const memory = this.#memories.get(bytes.buffer);
    if (memory === undefined) {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        'this memory is not of this client',
        'give what `allocate` returned',
      );
    }
    this.#memories.delete(bytes.buffer);
    for (const slab of memory.slabs.values()) await (await slab).close();
  }

  has(bytes: Uint8Array): boolean {
    return this.#memories.has(bytes.buffer);
  }

  slabOf(pd: ProtectionDomain, bytes: Uint8Array): Promise<MappableSlab> | undefined {
    const memory = this.#memories.get(bytes.buffer);
    if (memory === undefined) return undefined;
    let slab = memory.slabs.get(pd);
    if (slab === undefined) {
      slab = MappableSlab.over(pd, memory.bytes);
      memory.slabs.set(pd, slab);
      slab.catch(() => memory.slabs.delete(pd));
    }
    return slab;
  }

  forget(pd: ProtectionDomain): void {
    for (const { slabs } of this.#memories.values()) slabs.delete(pd);
  }
}
