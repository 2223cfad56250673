/**
 * Requests READs, atomics, FLUSH and ATOMIC WRITE (IBTA vol. 1 §9.7.3.1, annex A19). A READ that is longer than the
 * window becomes several READ requests on the wire, with the same PSNs as a single one, so that responses never overrun
 * the receive buffer.
 */

import { psnAdd, psnDiff, psnOffset } from '../packet/psn.js';
import type { TxBatch } from '../port/datagram.js';
import { KIND_READ } from './outstanding.js';
import { writeReadRequest, writeSingleRequest } from './request-packets.js';
import type { Segmenter } from './segmenter.js';
import type { SendSide } from './send-side.js';
import type { QueuePairParts } from './transport.js';

type Parts = Pick<QueuePairParts, 'attributes' | 'link' | 'congestion'>;

export class ReadRequester {
  readonly #parts: Parts;
  readonly #side: SendSide;
  readonly #segmenter: Segmenter;

  constructor(parts: Parts, side: SendSide, segmenter: Segmenter) {
    this.#parts = parts;
    this.#side = side;
    this.#segmenter = segmenter;
  }

  get #hasRoom(): boolean {
    return this.#side.out.reads.count < this.#parts.attributes.maxRdAtomic;
  }

  /** {@link emit} had nothing to send: true where the window was the cause, false where the limit of READs was. */
  waitsForWindow(index: number, isWindowFull: boolean): boolean {
    return this.#hasRoom || (isWindowFull && this.#side.out.kindOf(index) !== KIND_READ);
  }

  /**
   * Emits the request of the work request at `index` with this PSN. Returns the PSNs that its answer takes, 0 when it
   * has to wait.
   */
  emit(index: number, psn: number, batch: TxBatch, used: number, window: number): number {
    if (this.#side.out.kindOf(index) !== KIND_READ) return this.#emitSingle(psn, batch, used < window);
    return this.#emitRead(index, psn, batch, used, window);
  }

  #emitSingle(psn: number, batch: TxBatch, isInWindow: boolean): number {
    const { reads } = this.#side.out;
    if (!isInWindow) return 0;
    if (reads.endOf(psn) < 0) {
      if (!this.#hasRoom) return 0;
      reads.push(psn, psn);
    }
    writeSingleRequest(this.#parts, batch, this.#segmenter, psn);
    return 1;
  }

  /** Requests as much as may be in flight. */
  #emitRead(index: number, psn: number, batch: TxBatch, used: number, window: number): number {
    const out = this.#side.out;
    const { wqe } = this.#segmenter;
    const i = index & out.mask;
    let end = out.reads.endOf(psn);
    if (end < 0) {
      const left = psnOffset(out.lastPsn[i], psn) + 1;
      const room = window - used;
      // At least half a window at a time: smaller pieces would cost a request for a few packets.
      if (room <= 0 || (room < left && room < window >>> 1)) return 0;
      if (!this.#hasRoom) return 0;
      end = psnAdd(psn, Math.min(left, room) - 1);
      out.reads.push(psn, end);
    } else if (!this.#side.retransmitter.recovery.goesBack) end = this.#missingRunEnd(psn, end);
    const { mtuBytes } = this.#parts.link;
    const offset = psnOffset(psn, out.firstPsn[i]) * mtuBytes;
    const psns = psnOffset(end, psn) + 1;
    const bytes = end === out.lastPsn[i] ? wqe.messageBytes - offset : psns * mtuBytes;
    writeReadRequest(this.#parts, batch, wqe, psn, offset, bytes);
    return psns;
  }

  /**
   * Selective repeat requests only the lost run of responses again. If no response has come, the request itself may be
   * lost and is repeated unchanged, because a responder counts a part as a new message and its MSN would run ahead
   * (IBTA vol. 1 §9.7.7).
   */
  #missingRunEnd(psn: number, end: number): number {
    const { recovery } = this.#side.retransmitter;
    if (this.#side.out.reads.hasStart(psn) && !this.#hasDelivered(psn, end)) return end;
    let last = psn;
    while (last !== end && recovery.nextResend(psnAdd(last, 1), psnAdd(last, 2)) >= 0) last = psnAdd(last, 1);
    return last;
  }

  #hasDelivered(first: number, last: number): boolean {
    const { recovery } = this.#side.retransmitter;
    for (let psn = first; psnDiff(psn, last) <= 0; psn = psnAdd(psn, 1)) if (recovery.isDelivered(psn)) return true;
    return false;
  }
}
