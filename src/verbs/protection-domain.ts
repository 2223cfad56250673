/** Protection domains: the owners of regions, windows and queue pairs that may work together. */

import { checkKind, checkObject, checkOptions, ifGiven, type OptionNames, shown } from '../core/arguments.js';
import { bufferOver } from '../core/buffer-over.js';
import { RoceError } from '../core/errors.js';
import { checkAccess } from '../memory/ring/attribute-ranges.js';
import type { IpAddress } from '../packet/address.js';
import { Access } from './access.js';
import { AddressHandle } from './address-handle.js';
import type { RdmaDevice } from './device.js';
import { FastRegisterMemoryRegion, MemoryRegion, type RegionMemory } from './memory-region.js';
import { MemoryWindow } from './memory-window.js';
import { encodeDatagramAddress } from './qp-attributes.js';
import { QueuePair, type QueuePairInit } from './queue-pair.js';
import { Resource } from './resource.js';
import { SharedReceiveQueue } from './shared-receive-queue.js';

/** Details of {@link ProtectionDomain.regMr}. */
export interface RegisterOptions {
  /** The address peers use; by default one that overlaps no other region. */
  readonly iova?: bigint | undefined;
}

const REGISTER_OPTIONS: OptionNames<RegisterOptions> = { iova: true };
const SRQ_INIT: OptionNames<{ depth: number; maxSge?: number }> = { depth: true, maxSge: true };

/** A protection domain (`ibv_pd`), made by {@link RdmaDevice.createPd}. */
export class ProtectionDomain extends Resource {
  /** The device that it belongs to. */
  readonly device: RdmaDevice;
  /** The number that the NIC gave it. */
  readonly handle: number;
  /** Its registered regions, by local key. @internal */
  readonly regions: Map<number, MemoryRegion> = new Map();

  /** @internal */
  constructor(device: RdmaDevice, handle: number) {
    super(device);
    this.device = device;
    this.handle = handle;
  }

  /**
   * Registers memory (`ibv_reg_mr`): a buffer of the caller's, in place, or fresh zeroed memory when given a length.
   * `access` combines flags of `Access`; remote write and atomics also need LOCAL_WRITE. The NIC reads and writes these
   * bytes without a copy.
   *
   * Give no more access than peers need: a NIC in a worker sends data of RC requests without a copy only from regions
   * without REMOTE_WRITE, REMOTE_ATOMIC and MW_BIND.
   */
  async regMr(memory: Uint8Array | number, access: number, options: RegisterOptions = {}): Promise<MemoryRegion> {
    checkOptions('regMr', options, REGISTER_OPTIONS);
    const { bytes, iova, memoryId } = this.attach(memory, access, options.iova);
    try {
      const { mr, lkey, rkey } = await this.device.command('regMr', {
        pd: this.handle,
        memory: memoryId,
        offsetBytes: bytes.byteOffset,
        lengthBytes: bytes.length,
        iova,
        access,
      });
      return new MemoryRegion(this, { handle: mr, lkey, rkey, iova, access, bytes, memoryId });
    } catch (error) {
      this.device.link.detach(memoryId);
      throw error;
    }
  }

  /** Memory for a region with this access, as the NIC knows it. @internal */
  attach(memory: Uint8Array | number, access: number, address: bigint | undefined): RegionMemory {
    checkAccess('access', access);
    const bytes = this.#bytesOf(memory, (access & Access.REMOTE_ALL & ~Access.LOCAL_WRITE) !== 0);
    ifGiven(address, (value) => checkKind('iova', value, typeof value === 'bigint', 'a bigint, such as 0n'));
    const iova = address ?? this.device.takeIova(bytes.length);
    if (iova < 0n || iova + BigInt(bytes.length) > 1n << 64n) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'the region would reach beyond the 64-bit address space');
    }
    const memoryId = this.device.link.attach(bytes.buffer);
    if ((access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)) !== 0) this.device.grants?.letPeersWrite(bytes.buffer);
    return { bytes, iova, memoryId };
  }

  /** A fast-register region over the given memory: invalid until a REG_MR work request maps a part of it. */
  async allocFastRegMr(memory: Uint8Array | number): Promise<FastRegisterMemoryRegion> {
    const bytes = this.#bytesOf(memory, false);
    const memoryId = this.device.link.attach(bytes.buffer);
    try {
      const { mr, lkey } = await this.device.command('allocFastRegMr', {
        pd: this.handle,
        memory: memoryId,
        offsetBytes: bytes.byteOffset,
        lengthBytes: bytes.length,
      });
      return new FastRegisterMemoryRegion(this, { handle: mr, key: lkey, bytes, memoryId });
    } catch (error) {
      this.device.link.detach(memoryId);
      throw error;
    }
  }

  #bytesOf(memory: Uint8Array | number, isForPeers: boolean): Buffer {
    if (memory instanceof Uint8Array) return bufferOver(memory.buffer, memory.byteOffset, memory.length);
    if (!Number.isSafeInteger(memory) || memory < 0) {
      throw new RoceError(
        typeof memory === 'number' ? 'ERR_ROCE_OUT_OF_RANGE' : 'ERR_ROCE_INVALID_ARGUMENT',
        `a region of ${shown(memory)} bytes is not possible`,
        'pass a Buffer, or a number of bytes',
      );
    }
    try {
      return isForPeers ? this.device.allocate(memory) : this.device.allocateLocal(memory);
    } catch (cause) {
      const { message } = cause as RangeError;
      const text = `a region of ${memory} bytes is not possible`;
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, `take less memory: ${message}`, { cause });
    }
  }

  /**
   * A memory window of type 1 (any QP of the PD) or 2 (one QP, can be invalidated); usable once a BIND_MW has
   * completed.
   */
  async allocMw(type: 1 | 2): Promise<MemoryWindow> {
    const { mw, rkey } = await this.device.command('allocMw', { pd: this.handle, type });
    return new MemoryWindow(this, mw, type, rkey);
  }

  /**
   * A receive queue that several QPs share: `depth` receives (1..2^20) of up to `maxSge` elements (1..32, default 1).
   * Rejects with ERR_ROCE_OUT_OF_RANGE.
   */
  async createSrq(init: { depth: number; maxSge?: number | undefined }): Promise<SharedReceiveQueue> {
    checkObject('what createSrq() makes', init, 'an object: {depth, maxSge}');
    checkOptions('createSrq', init, SRQ_INIT);
    const { depth, maxSge = 1 } = init;
    return SharedReceiveQueue.create(this, depth, maxSge);
  }

  /**
   * A queue pair in RESET (`ibv_create_qp`). Rejects with ERR_ROCE_INVALID_ARGUMENT without a completion queue,
   * ERR_ROCE_OUT_OF_RANGE for depths and element counts, ERR_ROCE_CONFLICT for a shared receive queue of another
   * domain.
   */
  async createQp(init: QueuePairInit): Promise<QueuePair> {
    return QueuePair.create(this, init);
  }

  /**
   * Where a UD message goes: an address, a UDP port (4791 unless given), a DSCP from 0 to 63. Rejects with
   * ERR_ROCE_INVALID_ARGUMENT for an invalid address, ERR_ROCE_OUT_OF_RANGE for the numbers.
   */
  async createAh(
    remote: IpAddress,
    options: { udpPort?: number | undefined; dscp?: number | undefined } = {},
  ): Promise<AddressHandle> {
    const address = encodeDatagramAddress(remote, options);
    const { ah } = await this.device.command('createAh', { pd: this.handle, ...address });
    return new AddressHandle(this, ah);
  }

  protected override async release(): Promise<void> {
    await this.device.command('deallocPd', { pd: this.handle });
  }
}
