/**
 * Memory of a program that requests move data from and to in place, without a copy through the pool. It is registered once for each connection
 * that uses it; each request opens its own piece of it to the server, as pieces of the pool are opened.
 */

import { RoceError } from '../../core/errors.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import { MappableSlab } from './mappable-slab.js';

interface Memory {
  readonly bytes: Uint8Array;
  /** By the protection domain of a connection. */
  readonly slabs: Map<ProtectionDomain, Promise<MappableSlab>>;
}

/** The memories of one client, which its connections share. */
export class OwnMemory {
  readonly #memories = new Map<ArrayBufferLike, Memory>();

  /** From now on requests use this memory in place. It has its buffer to itself. */
  add(bytes: Uint8Array): void {
    this.#memories.set(bytes.buffer, { bytes, slabs: new Map() });
  }

  /** No request may use it. Throws ERR_ROCE_INVALID_ARGUMENT for memory that was not added. */
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

  /** Whether these bytes lie in a memory that was added. */
  has(bytes: Uint8Array): boolean {
    return this.#memories.has(bytes.buffer);
  }

  /** The memory that all of these bytes lie in, registered in the domain; undefined: they lie in none. Rejects as `allocFastRegMr`. */
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

  /** The domain is being closed, and with it what is registered there. */
  forget(pd: ProtectionDomain): void {
    for (const { slabs } of this.#memories.values()) slabs.delete(pd);
  }
}
