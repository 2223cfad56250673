/**
 * Send and receive queues: work requests as fixed-size elements (WQEs) that the NIC reads by itself.
 *
 * Send WQE, little-endian:                          Receive WQE:
 *   0  u8  opcode   1 u8 flags   2 u16 sge count       0 u32 cookie   4 u32 sge count   8 u32 total bytes
 *   4  u32 message bytes                              16 ...  SGEs
 *   8  u64 remote address (bind/reg: the new base)
 *  16  u32 rkey (bind/reg: the new key)               SGE, 16 bytes:
 *  20  u32 immediate | rkey to invalidate | FETH        0 u64 address   8 u32 bytes   12 u32 lkey
 *  24  u64 compare, or add (atomics)
 *  32  u64 swap (atomics)
 *  40  u32 address handle   44 u32 remote QPN   48 u32 Q_Key (UD)
 *  52  u32 window or region handle (bind/reg)   56 u32 access (bind/reg)
 *  64  ... SGEs, or the inline bytes
 *
 * wr_id stays with the application, beside the ring: the NIC only echoes the index.
 */

import { copyBytes, IS_LITTLE_ENDIAN } from '../../core/bytes.js';
import { RoceError } from '../../core/errors.js';
import { SEND_INLINE } from './enums.js';
import { createRingMemory, Ring } from './ring.js';

export const SGE_BYTES = 16;
export const SEND_FIXED_BYTES = 64;
const RECV_FIXED_BYTES = 16;

export const SGE_COUNT_MAX = 32;
/** The largest message of the transport (IBTA §9.7.8): 2^31 bytes. */
export const MESSAGE_BYTES_MAX = 2 ** 31;

/** A local buffer: address and length inside the region of `lkey`. */
export interface Sge {
  /** Address of the first byte: the region's `addr` plus an offset. */
  readonly addr: bigint;
  /** Bytes, 0 to 2^31. */
  readonly length: number;
  /** Local key of the region. */
  readonly lkey: number;
}

/** A send WQE as the NIC works with it: read once per message into this reused record. */
export class SendWqe {
  index = 0;
  opcode = 0;
  flags = 0;
  messageBytes = 0;
  remoteHigh = 0;
  remoteLow = 0;
  rkey = 0;
  immediate = 0;
  compareAddHigh = 0;
  compareAddLow = 0;
  swapHigh = 0;
  swapLow = 0;
  ah = 0;
  remoteQpn = 0;
  qkey = 0;
  handle = 0;
  access = 0;
  /** Where inline data starts in the ring's bytes; only with SEND_INLINE. */
  inlineOffset = 0;
  readonly sges = new SgeList();
}

/** Most lists are this short; a thousand idle queue pairs should not hold memory for the others. */
const SGE_COUNT_USUAL = 4;

/** A scatter/gather list in flat arrays, as long as the longest one read so far. */
export class SgeList {
  count = 0;
  totalBytes = 0;
  /** Addresses, bits 63..32. */
  high = new Uint32Array(SGE_COUNT_USUAL);
  /** Addresses, bits 31..0. */
  low = new Uint32Array(SGE_COUNT_USUAL);
  /** Bytes of each. */
  lengths = new Uint32Array(SGE_COUNT_USUAL);
  lkeys = new Uint32Array(SGE_COUNT_USUAL);

  /** Reads `count` elements (at most {@link SGE_COUNT_MAX}) that are in a WQE from `offset`. */
  read(view: DataView, offset: number, count: number): void {
    if (count > this.high.length) this.#grow();
    this.count = count;
    this.totalBytes = 0;
    let o = offset;
    for (let i = 0; i < this.count; i++, o += SGE_BYTES) {
      this.low[i] = view.getUint32(o, true);
      this.high[i] = view.getUint32(o + 4, true);
      this.lengths[i] = view.getUint32(o + 8, true);
      this.lkeys[i] = view.getUint32(o + 12, true);
      this.totalBytes += this.lengths[i];
    }
  }

  #grow(): void {
    this.high = new Uint32Array(SGE_COUNT_MAX);
    this.low = new Uint32Array(SGE_COUNT_MAX);
    this.lengths = new Uint32Array(SGE_COUNT_MAX);
    this.lkeys = new Uint32Array(SGE_COUNT_MAX);
  }
}

/**
 * Throws ERR_ROCE_LIMIT unless the list fits the queue, ERR_ROCE_OUT_OF_RANGE unless it fits the transport,
 * ERR_ROCE_INVALID_ARGUMENT for an address that is not a bigint.
 */
function checkSges(sges: readonly Sge[], maxSge: number): void {
  if (sges.length > maxSge) {
    throw new RoceError(
      'ERR_ROCE_LIMIT',
      `${sges.length} scatter/gather elements, but the queue was made for ${maxSge}`,
      'raise maxSendSge or maxRecvSge when creating the QP',
    );
  }
  let total = 0;
  for (const sge of sges) {
    if (!Number.isInteger(sge.length) || sge.length < 0 || sge.length > MESSAGE_BYTES_MAX) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a scatter/gather element of ${sge.length} bytes is not possible`);
    }
    if (typeof sge.addr !== 'bigint') {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        `the address of a scatter/gather element is ${sge.addr}`,
        'it must be a bigint: MemoryRegion.sge makes elements',
      );
    }
    total += sge.length;
  }
  if (total > MESSAGE_BYTES_MAX) {
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a message of ${total} bytes exceeds the transport's 2^31`);
  }
}

abstract class WorkQueue extends Ring {
  /** The memory as 64-bit numbers: storing one takes 5 ns, by a DataView 12. */
  readonly #longs: BigUint64Array;

  constructor(memory: ArrayBufferLike, elementBytes: number) {
    super(memory, elementBytes);
    this.#longs = new BigUint64Array(memory, 0, memory.byteLength >>> 3);
  }

  /** Stores a number, little-endian, at a byte offset that is a multiple of 8. */
  protected writeU64(offset: number, value: bigint): void {
    if (IS_LITTLE_ENDIAN) this.#longs[offset >>> 3] = value;
    else this.view.setBigUint64(offset, value, true);
  }

  /** Writes elements from `offset` on. Returns the sum of their lengths. */
  protected writeSges(offset: number, sges: readonly Sge[]): number {
    const { view } = this;
    let total = 0;
    let o = offset;
    for (const sge of sges) {
      this.writeU64(o, sge.addr);
      view.setUint32(o + 8, sge.length, true);
      view.setUint32(o + 12, sge.lkey, true);
      total += sge.length;
      o += SGE_BYTES;
    }
    return total;
  }
}

export class SendQueue extends WorkQueue {
  readonly maxSge: number;
  readonly maxInlineBytes: number;
  /** Offset of the element that was begun last. */
  #at = 0;

  static create(
    allocate: (bytes: number) => ArrayBufferLike,
    depth: number,
    maxSge: number,
    maxInlineBytes: number,
  ): SendQueue {
    const room = Math.max(maxSge * SGE_BYTES, maxInlineBytes);
    return new SendQueue(createRingMemory(allocate, depth, SEND_FIXED_BYTES + Math.ceil(room / 64) * 64));
  }

  constructor(memory: ArrayBufferLike) {
    super(memory, SEND_FIXED_BYTES);
    this.maxInlineBytes = this.strideBytes - SEND_FIXED_BYTES;
    this.maxSge = Math.min(SGE_COUNT_MAX, Math.floor(this.maxInlineBytes / SGE_BYTES));
  }

  /**
   * Application side: begins the element at `index`, which the `put` methods complete; fields that none of them writes
   * are 0. The caller publishes it by advancing `producer`.
   */
  begin(index: number, opcode: number, flags: number): void {
    const o = this.offsetOf(index);
    this.#at = o;
    this.bytes.fill(0, o, o + SEND_FIXED_BYTES);
    this.view.setUint8(o, opcode);
    this.view.setUint8(o + 1, flags);
  }

  /** Address and key at the peer; BIND_MW and REG_MR: the new base and the new key. */
  putRemote(address: bigint, key: number): void {
    this.writeU64(this.#at + 8, address);
    this.view.setUint32(this.#at + 16, key, true);
  }

  /** Immediate data, or the key that the peer is to invalidate. */
  putImmediate(value: number): void {
    this.view.setUint32(this.#at + 20, value, true);
  }

  /** FLUSH: what the FETH says, and the bytes of the range, of which there are none in the request. */
  putFlush(feth: number, lengthBytes: number): void {
    this.putImmediate(feth);
    this.view.setUint32(this.#at + 4, lengthBytes, true);
  }

  /** Atomics: the operand to compare with or to add, and the one that replaces the value. */
  putOperands(compareAdd: bigint, swap: bigint): void {
    this.writeU64(this.#at + 24, compareAdd);
    this.writeU64(this.#at + 32, swap);
  }

  /** UD: where the receiver is, its QPN and its Q_Key. */
  putReceiver(ah: number, remoteQpn: number, qkey: number): void {
    this.view.setUint32(this.#at + 40, ah, true);
    this.view.setUint32(this.#at + 44, remoteQpn, true);
    this.view.setUint32(this.#at + 48, qkey, true);
  }

  /** BIND_MW and REG_MR: the window or region, and the rights of its new key. */
  putBinding(handle: number, access: number): void {
    this.view.setUint32(this.#at + 52, handle, true);
    this.view.setUint32(this.#at + 56, access, true);
  }

  /** Local buffers. Throws what {@link checkSges} throws. */
  putSges(sges: readonly Sge[]): void {
    checkSges(sges, this.maxSge);
    this.view.setUint16(this.#at + 2, sges.length, true);
    this.view.setUint32(this.#at + 4, this.writeSges(this.#at + SEND_FIXED_BYTES, sges), true);
  }

  /** The data themselves, instead of local buffers. Throws ERR_ROCE_LIMIT when they do not fit. */
  putInline(data: Uint8Array): void {
    const o = this.#at;
    if (data.length > this.maxInlineBytes) {
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        `${data.length} bytes of inline data, but the queue takes ${this.maxInlineBytes}`,
        'raise maxInlineBytes when creating the QP, or send from a memory region',
      );
    }
    this.bytes[o + 1] |= SEND_INLINE;
    this.view.setUint32(o + 4, data.length, true);
    copyBytes(data, 0, this.bytes, o + SEND_FIXED_BYTES, data.length);
  }

  opcodeAt(index: number): number {
    return this.bytes[this.offsetOf(index)];
  }

  flagsAt(index: number): number {
    return this.bytes[this.offsetOf(index) + 1];
  }

  read(index: number, out: SendWqe): void {
    const { view } = this;
    const o = this.offsetOf(index);
    out.index = index;
    out.opcode = view.getUint8(o);
    out.flags = view.getUint8(o + 1);
    out.messageBytes = view.getUint32(o + 4, true);
    out.remoteLow = view.getUint32(o + 8, true);
    out.remoteHigh = view.getUint32(o + 12, true);
    out.rkey = view.getUint32(o + 16, true);
    out.immediate = view.getUint32(o + 20, true);
    out.compareAddLow = view.getUint32(o + 24, true);
    out.compareAddHigh = view.getUint32(o + 28, true);
    out.swapLow = view.getUint32(o + 32, true);
    out.swapHigh = view.getUint32(o + 36, true);
    out.ah = view.getUint32(o + 40, true);
    out.remoteQpn = view.getUint32(o + 44, true);
    out.qkey = view.getUint32(o + 48, true);
    out.handle = view.getUint32(o + 52, true);
    out.access = view.getUint32(o + 56, true);
    out.inlineOffset = o + SEND_FIXED_BYTES;
    const sgeCount = out.flags & SEND_INLINE ? 0 : Math.min(view.getUint16(o + 2, true), this.maxSge);
    out.sges.read(view, o + SEND_FIXED_BYTES, sgeCount);
  }

  messageBytesAt(index: number): number {
    return this.view.getUint32(this.offsetOf(index) + 4, true);
  }
}

/**
 * A receive WQE in the NIC: the list is copied when the element is taken, so that its slot can be posted again at once.
 */
export class RecvWqe {
  bound = false;
  cookie = 0;
  readonly sges = new SgeList();
}

export class RecvQueue extends WorkQueue {
  readonly maxSge: number;

  /**
   * The application's side over new memory, for at least `maxSge` elements. `depth` is rounded up to a power of two.
   */
  static create(allocate: (bytes: number) => ArrayBufferLike, depth: number, maxSge: number): RecvQueue {
    return new RecvQueue(createRingMemory(allocate, depth, RECV_FIXED_BYTES + Math.max(1, maxSge) * SGE_BYTES));
  }

  constructor(memory: ArrayBufferLike) {
    super(memory, RECV_FIXED_BYTES);
    this.maxSge = Math.min(SGE_COUNT_MAX, Math.floor((this.strideBytes - RECV_FIXED_BYTES) / SGE_BYTES));
  }

  /** Application side: writes the element at `index`; `cookie` comes back in the completion. */
  write(index: number, cookie: number, sges: readonly Sge[]): void {
    checkSges(sges, this.maxSge);
    const o = this.offsetOf(index);
    this.view.setUint32(o, cookie, true);
    this.view.setUint32(o + 4, sges.length, true);
    this.view.setUint32(o + 8, this.writeSges(o + RECV_FIXED_BYTES, sges), true);
  }

  /** NIC side: takes the oldest element into `out`; false when the queue is empty. */
  take(out: RecvWqe): boolean {
    const index = this.consumer;
    if (!this.isPublished(index)) return false;
    const o = this.offsetOf(index);
    out.bound = true;
    out.cookie = this.view.getUint32(o, true);
    out.sges.read(this.view, o + RECV_FIXED_BYTES, Math.min(this.view.getUint32(o + 4, true), this.maxSge));
    this.consumer = (index + 1) >>> 0;
    return true;
  }
}
