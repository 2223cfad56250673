/** Memory regions: bytes that the NIC, and with remote access flags the peer, may touch. */

import { checkObject, checkOptions, type OptionNames, shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { highOfBig, lowOfBig } from '../core/u64.js';
import type { CopyView } from '../memory/mapped/copy-view.js';
import type { Sge } from '../memory/ring/work-queue.js';
import { Access } from './access.js';
import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';

const FOR_PEERS = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

/** What {@link MemoryRegion.reregister} changes; the rest stays. */
export interface ReregisterOptions {
  /** Flags of {@link Access}. */
  readonly access?: number | undefined;
  /** Other memory, as `regMr` takes it; its address is new unless `iova` is given. */
  readonly memory?: Uint8Array | number | undefined;
  /** The address that peers use. */
  readonly iova?: bigint | undefined;
  /** Of the same device. */
  readonly pd?: ProtectionDomain | undefined;
}

const REREGISTER_OPTIONS: OptionNames<ReregisterOptions> = { access: true, memory: true, iova: true, pd: true };

/** Memory that the NIC can reach, and the address that peers use. @internal */
export interface RegionMemory {
  readonly bytes: Buffer;
  readonly iova: bigint;
  readonly memoryId: number;
}

/** A memory region (`ibv_mr`), made by {@link ProtectionDomain.regMr}. */
export class MemoryRegion extends Resource {
  override readonly closeRank = 2;
  /** The number that the NIC gave it. */
  readonly handle: number;
  /** Local key, for scatter/gather elements. */
  readonly lkey: number;
  /** Remote key, for the peer's WRITEs, READs and atomics. */
  readonly rkey: number;
  #addr: bigint;
  #access: number;
  #bytes: Buffer;
  #pd: ProtectionDomain;
  #memoryId: number;
  #grant: number | undefined;
  #changing: Promise<void> = Promise.resolve();
  /** What copies by this thread use; made by the first. @internal */
  copyView: CopyView | undefined;

  /** @internal */
  constructor(
    pd: ProtectionDomain,
    init: {
      handle: number;
      lkey: number;
      rkey: number;
      iova: bigint;
      access: number;
      bytes: Buffer;
      memoryId: number;
    },
  ) {
    super(pd);
    this.#pd = pd;
    this.handle = init.handle;
    this.lkey = init.lkey;
    this.rkey = init.rkey;
    this.#addr = init.iova;
    this.#access = init.access;
    this.#bytes = init.bytes;
    this.#memoryId = init.memoryId;
    pd.regions.set(this.lkey, this);
    this.#grant = this.#grantToPeers();
  }

  /** The address of the first byte, as peers name it. */
  get addr(): bigint {
    return this.#addr;
  }

  /** Flags of {@link Access} it was registered with. */
  get access(): number {
    return this.#access;
  }

  /** The registered bytes themselves. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** The protection domain that it belongs to: only its queue pairs can use the region. */
  get pd(): ProtectionDomain {
    return this.#pd;
  }

  /** Virtual address of the first byte as the NIC has it, bits 63..32 and 31..0. @internal */
  get base(): { readonly high: number; readonly low: number } {
    if ((this.access & Access.ZERO_BASED) !== 0) return { high: 0, low: 0 };
    return { high: highOfBig(this.addr), low: lowOfBig(this.addr) };
  }

  #grantToPeers(): number | undefined {
    const { pd, rkey, access, base, bytes } = this;
    if ((access & FOR_PEERS) === 0 || bytes.length === 0) return undefined;
    return pd.device.grants?.grant(bytes.buffer, {
      rkey,
      pd: pd.handle,
      access,
      baseHigh: base.high,
      baseLow: base.low,
      lengthBytes: bytes.length,
      offsetBytes: bytes.byteOffset,
    });
  }

  /** Bytes. */
  get length(): number {
    return this.bytes.length;
  }

  /** A scatter/gather element for [offset, offset + length). Throws ERR_ROCE_OUT_OF_RANGE when it reaches outside. */
  sge(offset = 0, length = this.length - offset): Sge {
    checkInside(offset, length, this.length);
    return { addr: this.addr + BigInt(offset), length, lkey: this.lkey };
  }

  /**
   * The bytes [offset, offset + length) of the region, for `send`, `write` and `read` of a connection. Throws
   * ERR_ROCE_OUT_OF_RANGE when the range reaches outside. It costs nothing on the NIC, and lives as long as the region.
   */
  slice(offset = 0, length: number = this.length - offset): MemorySlice {
    return new MemorySlice(this, offset, length);
  }

  /**
   * Changes memory, address, access or protection domain (`ibv_rereg_mr`). Keys stay. Requests in progress on the
   * region fail: change it when none is. Rejects with ERR_ROCE_CONFLICT for a domain of another device, ERR_ROCE_BUSY
   * while windows are bound to it or a peer copies, and with the errors of `regMr`; nothing has changed then.
   */
  reregister(changes: ReregisterOptions): Promise<void> {
    const changed = this.#changing.then(() => this.#reregister(changes));
    this.#changing = changed.catch(() => {});
    return changed;
  }

  async #reregister(changes: ReregisterOptions): Promise<void> {
    checkOptions('reregister', changes, REREGISTER_OPTIONS);
    const { pd = this.#pd, access = this.#access, memory = this.#bytes } = changes;
    const { device } = this.#pd;
    checkObject('pd', pd, 'a protection domain');
    if (pd.device !== device) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'the protection domain belongs to another device');
    }
    const address = changes.iova ?? (changes.memory === undefined ? this.#addr : undefined);
    const { bytes, iova, memoryId } = pd.attach(memory, access, address);
    const isGranted = this.#grant !== undefined;
    try {
      await this.#revoke();
      const place = { memory: memoryId, offsetBytes: bytes.byteOffset, lengthBytes: bytes.length };
      await device.command('reregMr', { mr: this.handle, pd: pd.handle, ...place, iova, access });
    } catch (error) {
      if (isGranted) this.#grant ??= this.#grantToPeers();
      device.link.detach(memoryId);
      throw error;
    }
    device.link.detach(this.#memoryId);
    this.#pd.regions.delete(this.lkey);
    this.#memoryId = memoryId;
    this.#addr = iova;
    this.#access = access;
    this.#bytes = bytes;
    this.copyView = undefined;
    if (pd !== this.#pd) this.moveTo(pd);
    this.#pd = pd;
    pd.regions.set(this.lkey, this);
    this.#grant = this.#grantToPeers();
  }

  async #revoke(): Promise<void> {
    if (this.#grant !== undefined) await this.#pd.device.grants!.revoke(this.#grant);
    this.#grant = undefined;
  }

  protected override async release(): Promise<void> {
    await this.#changing;
    const { pd } = this;
    if (pd.regions.has(this.lkey)) await pd.device.command('deregMr', { mr: this.handle });
    pd.regions.delete(this.lkey);
    await this.#revoke();
    pd.device.link.detach(this.#memoryId);
  }
}

/** A range of a {@link MemoryRegion}, made by its `slice`. */
export class MemorySlice {
  /** The region that it is a part of. */
  readonly region: MemoryRegion;
  /** Bytes from the beginning of the region to the slice. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;

  /** @internal */
  constructor(region: MemoryRegion, offset: number, length: number) {
    checkInside(offset, length, region.length);
    this.region = region;
    this.offset = offset;
    this.length = length;
  }

  /** The bytes themselves: a view of the region's. */
  get bytes(): Buffer {
    return this.region.bytes.subarray(this.offset, this.offset + this.length);
  }
}

/**
 * A region that work requests register (REG_MR) and invalidate (LOCAL_INV, or the peer's SEND_WITH_INV), as kernel
 * storage drivers use it: mapping costs no command. The index of the key stays; the owner may change its low 8 bits.
 */
export class FastRegisterMemoryRegion extends Resource {
  override readonly closeRank = 2;
  /** The number that the NIC gave it. */
  readonly handle: number;
  /** All memory that may be mapped. */
  readonly bytes: Buffer;
  #key: number;
  readonly #pd: ProtectionDomain;
  readonly #memoryId: number;

  /** @internal */
  constructor(pd: ProtectionDomain, init: { handle: number; key: number; bytes: Buffer; memoryId: number }) {
    super(pd);
    this.#pd = pd;
    this.handle = init.handle;
    this.#key = init.key;
    this.bytes = init.bytes;
    this.#memoryId = init.memoryId;
  }

  /** lkey and rkey of the current, or last, registration. */
  get key(): number {
    return this.#key;
  }

  /** The key for the next registration: the old one's index, the next low 8 bits. Call once per REG_MR. */
  nextKey(): number {
    this.#key = ((this.#key & ~0xff) | ((this.#key + 1) & 0xff)) >>> 0;
    return this.#key;
  }

  protected override async release(): Promise<void> {
    await this.#pd.device.command('deregMr', { mr: this.handle });
    this.#pd.device.link.detach(this.#memoryId);
  }
}

function checkInside(offset: number, length: number, total: number): void {
  if (Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length >= 0 && length <= total - offset)
    return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `[${shown(offset)}, ${shown(offset)} + ${shown(length)}) is not inside the region of ${total} bytes`,
  );
}
