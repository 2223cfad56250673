/**
 * The completion queue: the NIC writes CQEs, the application takes them.
 *
 * CQE, 64 bytes, little-endian:
 *   0 u32 index (send: free-running WQE index; receive: cookie)   4 u32 QPN
 *   8 u8 status   9 u8 opcode   10 u8 flags   11 u8 1 for a receive
 *  12 u32 byte count 16 u32 immediate, or invalidated rkey 20 u32 source QPN (UD) 24 u32 vendor error (AETH syndrome)
 */

import { RoceError } from '../../core/errors.js';
import { STATUS_SUCCESS, WC_FLAG_SOLICITED } from './enums.js';
import { createRingMemory, Ring, WORD_ARMED, WORD_DEPTH, WORD_STRIDE } from './ring.js';

export const CQE_BYTES = 64;

export const ARM_NONE = 0;
/** The next completion that is solicited or an error raises an event. */
export const ARM_SOLICITED = 1;
export const ARM_NEXT = 2;

export class Cqe {
  index = 0;
  /** The queue pair that worked; 0 once it is gone. */
  qpn = 0;
  status = 0;
  opcode = 0;
  flags = 0;
  isReceive = false;
  byteCount = 0;
  /** Immediate data, or the R_Key that was invalidated, as the flags say. */
  immediate = 0;
  sourceQpn = 0;
  /** AETH syndrome of the NAK that ended the request, 0 without one. */
  vendorError = 0;
}

export class CompletionRing extends Ring {
  /** The application's side over new memory. `depth` is rounded up to a power of two. */
  static create(allocate: (bytes: number) => ArrayBufferLike, depth: number): CompletionRing {
    return new CompletionRing(createRingMemory(allocate, depth, CQE_BYTES));
  }

  constructor(memory: ArrayBufferLike) {
    super(memory, CQE_BYTES);
  }

  /** False when the ring is full: the completion is lost and the CQ is broken. */
  push(cqe: Cqe): boolean {
    const index = this.producer;
    if ((index - this.consumer) >>> 0 >= this.depth) return false;
    const { view } = this;
    const o = this.offsetOf(index);
    view.setUint32(o, cqe.index, true);
    view.setUint32(o + 4, cqe.qpn, true);
    view.setUint8(o + 8, cqe.status);
    view.setUint8(o + 9, cqe.opcode);
    view.setUint8(o + 10, cqe.flags);
    view.setUint8(o + 11, cqe.isReceive ? 1 : 0);
    view.setUint32(o + 12, cqe.byteCount, true);
    view.setUint32(o + 16, cqe.immediate, true);
    view.setUint32(o + 20, cqe.sourceQpn, true);
    view.setUint32(o + 24, cqe.vendorError, true);
    this.producer = (index + 1) >>> 0;
    return true;
  }

  take(out: Cqe): boolean {
    const index = this.consumer;
    if (index === this.producer) return false;
    this.readAt(index, out);
    this.consumer = (index + 1) >>> 0;
    return true;
  }

  /** Application side: the QP is gone, and its unpolled completions have QPN 0 from now on, which is unused. */
  forget(qpn: number, onReceive: (cookie: number) => void): void {
    const { view } = this;
    for (let index = this.consumer; index !== this.producer; index = (index + 1) >>> 0) {
      const o = this.offsetOf(index);
      if (view.getUint32(o + 4, true) !== qpn) continue;
      view.setUint32(o + 4, 0, true);
      if (view.getUint8(o + 11) === 1) onReceive(view.getUint32(o, true));
    }
  }

  /**
   * NIC side: later completions come here instead of `other`, with what it was armed for, and leave room for those
   * there that were not taken. Throws ERR_ROCE_LIMIT if there is none.
   */
  continue(other: CompletionRing): void {
    if (other.fill > this.depth) {
      throw new RoceError('ERR_ROCE_LIMIT', `${other.fill} completions were not taken, ${this.depth} would fit`);
    }
    for (let word = 0; word < this.header.length; word++) {
      if (word !== WORD_DEPTH && word !== WORD_STRIDE) this.header[word] = other.header[word];
    }
  }

  /** Reads the element at a free-running index into `out`, taken or not. */
  readAt(index: number, out: Cqe): void {
    const { view } = this;
    const o = this.offsetOf(index);
    out.index = view.getUint32(o, true);
    out.qpn = view.getUint32(o + 4, true);
    out.status = view.getUint8(o + 8);
    out.opcode = view.getUint8(o + 9);
    out.flags = view.getUint8(o + 10);
    out.isReceive = view.getUint8(o + 11) === 1;
    out.byteCount = view.getUint32(o + 12, true);
    out.immediate = view.getUint32(o + 16, true);
    out.sourceQpn = view.getUint32(o + 20, true);
    out.vendorError = view.getUint32(o + 24, true);
  }

  /**
   * Application side: true when a completion that was not taken is solicited or an error, which counts as solicited.
   */
  get holdsSolicited(): boolean {
    for (let index = this.consumer; index !== this.producer; index = (index + 1) >>> 0) {
      const o = this.offsetOf(index);
      if (this.bytes[o + 8] !== STATUS_SUCCESS || (this.bytes[o + 10] & WC_FLAG_SOLICITED) !== 0) return true;
    }
    return false;
  }

  /** Arming for solicited completions does not cancel an arm for any completion. */
  arm(what: number): void {
    if (Atomics.load(this.header, WORD_ARMED) < what) Atomics.store(this.header, WORD_ARMED, what);
  }

  /** NIC side: true (once) when a completion of this kind is what the application armed for. */
  disarmIf(solicited: boolean): boolean {
    const armed = Atomics.load(this.header, WORD_ARMED);
    if (armed === ARM_NONE || (armed === ARM_SOLICITED && !solicited)) return false;
    Atomics.store(this.header, WORD_ARMED, ARM_NONE);
    return true;
  }
}
