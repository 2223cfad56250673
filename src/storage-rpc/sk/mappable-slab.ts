/**
 * Memory that REG_MR opens to the server per request, and SEND_WITH_INV or LOCAL_INV closes. Keys have a random index,
 * several per slab in turn, and 8 bits that change with every use, so that a late packet with an old key cannot match a
 * new mapping before {@link REGIONS_MIN} x 256 others (storage rule e).
 */

import type { FastRegisterMemoryRegion } from '../../verbs/memory-region.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { BufferLease, Slab } from '../pool/buffer-pool.js';

const REGIONS_MIN = 16;

export class MappableSlab implements Slab {
  readonly bytes: Uint8Array;
  readonly #pd: ProtectionDomain;
  /** The one unused for longest comes first. */
  readonly #unmapped: FastRegisterMemoryRegion[] = [];

  private constructor(pd: ProtectionDomain, bytes: Uint8Array) {
    this.#pd = pd;
    this.bytes = bytes;
  }

  static create(pd: ProtectionDomain, bytes: number): Promise<MappableSlab> {
    return MappableSlab.over(pd, pd.device.allocate(bytes));
  }

  static async over(pd: ProtectionDomain, bytes: Uint8Array): Promise<MappableSlab> {
    const slab = new MappableSlab(pd, bytes);
    for (let i = 0; i < REGIONS_MIN; i++) slab.putBack(await pd.allocFastRegMr(slab.bytes));
    return slab;
  }

  async take(): Promise<FastRegisterMemoryRegion> {
    return this.takeNow() ?? (await this.#pd.allocFastRegMr(this.bytes));
  }

  takeNow(): FastRegisterMemoryRegion | undefined {
    return this.#unmapped.shift();
  }

  putBack(region: FastRegisterMemoryRegion): void {
    this.#unmapped.push(region);
  }

  async close(): Promise<void> {
    for (const region of this.#unmapped.splice(0)) await region.close();
  }
}

/** Memory of one request, from its REG_MR until its key is invalid. */
export class Mapping {
  readonly lease: BufferLease<MappableSlab>;
  readonly key: number;
  /** The offset in the slab serves as the address: the key alone identifies the slab. */
  readonly addr: bigint;
  open = true;
  readonly #region: FastRegisterMemoryRegion;

  constructor(lease: BufferLease<MappableSlab>, region: FastRegisterMemoryRegion) {
    this.lease = lease;
    this.#region = region;
    this.key = region.nextKey();
    this.addr = BigInt(lease.offset);
  }

  /** `access`: what the peer may do, and `LOCAL_WRITE` where it writes. */
  registration(access: number) {
    const { offset, length } = this.lease;
    const { addr: iova, key } = this;
    return { opcode: 'REG_MR', mr: this.#region, key, offset, length, iova, access, signaled: false } as const;
  }

  release(): void {
    this.lease.slab.putBack(this.#region);
    this.lease.release();
  }
}
