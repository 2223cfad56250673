/**
 * The completer: judges what comes back (IBTA vol. 1 §9.7.5, §9.7.6). It advances the oldest unacknowledged PSN, places READ and atomic
 * results, and tells the requester what was lost.
 */

import { SgeCursor } from '../memory/sge-cursor.js';
import {
  NAK_INVALID_REQUEST,
  NAK_PSN_SEQUENCE,
  NAK_REMOTE_ACCESS,
  RNR_TIMER_NS,
  SYNDROME_KIND_ACK,
  SYNDROME_KIND_NAK,
  SYNDROME_KIND_RNR,
  syndromeKind,
} from '../packet/aeth.js';
import { OP_ACK, OP_ATOMIC_ACK, RC_READ_RESPONSE_MIDDLE, VENDOR_SACK } from '../packet/opcode.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import type { RocePacket } from '../packet/roce.js';
import { LOSS_REPORTED } from '../retransmit/recovery.js';
import { RNR_RETRY_INFINITE } from '../retransmit/timers.js';
import { COUNTER } from '../ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  STATUS_BAD_RESP_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_REM_ACCESS_ERR,
  STATUS_REM_INV_REQ_ERR,
  STATUS_REM_OP_ERR,
  STATUS_RNR_RETRY_EXC_ERR,
} from '../ring/enums.js';
import { type SendQueue, SendWqe } from '../ring/work-queue.js';
import { KIND_ATOMIC, KIND_DATA, KIND_LOCAL, KIND_READ } from './outstanding.js';
import type { RcShared } from './rc-shared.js';
import type { Requester } from './requester.js';

const ATOMIC_BYTES = 8;

export class Completer {
  readonly #qp: RcShared;
  readonly #sq: SendQueue;
  readonly #requester: Requester;
  readonly #wqe = new SendWqe();
  readonly #sink = new SgeCursor();
  #sinkIndex = -1;
  /** An atomic's result in host order (little-endian), on its way to memory. */
  readonly #atomicResult = new Uint8Array(ATOMIC_BYTES);

  constructor(qp: RcShared, sq: SendQueue, requester: Requester) {
    this.#qp = qp;
    this.#sq = sq;
    this.#requester = requester;
  }

  reset(): void {
    this.#sinkIndex = -1;
  }

  /** A response packet that passed all checks of the receive path. */
  receive(packet: RocePacket, bytes: Uint8Array, now: number): void {
    const { out } = this.#requester;
    // A SACK names what is missing: at most what will be sent next.
    const next = packet.opcode === VENDOR_SACK ? psnAdd(out.newPsn, 1) : out.newPsn;
    if (psnDiff(packet.psn, next) >= 0) {
      this.#stale(); // About what was never sent.
      return;
    }
    switch (packet.info.kind) {
      case OP_ACK:
        this.#receiveAck(packet, bytes, now);
        return;
      case OP_ATOMIC_ACK:
        this.#receiveData(packet, bytes, KIND_ATOMIC, now);
        return;
      default:
        this.#receiveData(packet, bytes, KIND_READ, now);
    }
  }

  #stale(): void {
    this.#qp.host.counters[COUNTER.stale_response]++;
  }

  #receiveAck(packet: RocePacket, bytes: Uint8Array, now: number): void {
    const requester = this.#requester;
    const { counters } = this.#qp.host;
    const kind = syndromeKind(packet.syndrome);
    if (kind === SYNDROME_KIND_ACK) {
      if (psnDiff(packet.psn, requester.out.unacked) < 0) this.#stale();
      else if (!this.#acknowledge(packet.psn, now)) this.#impliedNak(packet.psn);
      return;
    }
    // Any NAK acknowledges what stands before its PSN.
    const before = psnAdd(packet.psn, -1);
    const reachesBefore = psnDiff(before, requester.out.unacked) < 0 || this.#acknowledge(before, now);
    if (!reachesBefore) {
      this.#impliedNak(before);
      if (packet.opcode !== VENDOR_SACK) return;
    }
    if (kind === SYNDROME_KIND_RNR) {
      counters[COUNTER.rnr_nak_received]++;
      if (packet.psn === requester.out.unacked) this.#receiverNotReady(packet, now);
    } else if (kind !== SYNDROME_KIND_NAK) this.#stale();
    else if (packet.opcode === VENDOR_SACK) this.#receiveSack(packet, bytes);
    else if (packet.syndrome === NAK_PSN_SEQUENCE) {
      counters[COUNTER.packet_seq_err]++;
      this.#sequenceError(packet.psn);
    } else this.#fatalNak(packet);
  }

  /**
   * NAK 0x60: everything from `psn` on is to be sent again. Go-back-0 names the start of a message, which may lie behind `unacked`; when
   * `psn` lies ahead, inside a READ, responses before it are missing as well.
   */
  #sequenceError(psn: number): void {
    const { out, recovery } = this.#requester;
    const oldest = recovery.restartsMessages && !out.isIdle ? out.firstPsn[out.head & out.mask] : out.unacked;
    if (psnDiff(psn, oldest) < 0) this.#stale();
    else this.#requester.lost(psnDiff(psn, out.unacked) > 0 ? out.unacked : psn, out.newPsn, LOSS_REPORTED);
  }

  #receiverNotReady(packet: RocePacket, now: number): void {
    const requester = this.#requester;
    if (requester.rnrDeadlineNs !== Number.POSITIVE_INFINITY) return;
    if (this.#qp.attributes.rnrRetry !== RNR_RETRY_INFINITE) {
      if (requester.rnrRetriesLeft === 0) {
        this.#qp.host.counters[COUNTER.rnr_nak_retry_err]++;
        requester.completeInError(STATUS_RNR_RETRY_EXC_ERR, packet.syndrome);
        return;
      }
      requester.rnrRetriesLeft--;
    }
    requester.waitForReceiver(packet.psn, now + RNR_TIMER_NS[packet.syndrome & 0x1f]);
  }

  #fatalNak(packet: RocePacket): void {
    const requester = this.#requester;
    const { counters } = this.#qp.host;
    if (packet.psn !== requester.out.unacked) {
      this.#stale(); // About a packet that was acknowledged, or stands inside a READ whose earlier responses were lost.
      return;
    }
    if (packet.syndrome === NAK_INVALID_REQUEST) {
      counters[COUNTER.req_remote_invalid_request]++;
      requester.completeInError(STATUS_REM_INV_REQ_ERR, packet.syndrome);
    } else if (packet.syndrome === NAK_REMOTE_ACCESS) {
      counters[COUNTER.req_remote_access_errors]++;
      requester.completeInError(STATUS_REM_ACCESS_ERR, packet.syndrome);
    } else {
      counters[COUNTER.req_remote_operation_errors]++;
      requester.completeInError(STATUS_REM_OP_ERR, packet.syndrome);
    }
  }

  /** SACK: BTH.PSN is missing; bit i says that PSN + 1 + i is there. What is missing below the highest one there is lost. */
  #receiveSack(packet: RocePacket, bytes: Uint8Array): void {
    const requester = this.#requester;
    const { out } = requester;
    if (psnDiff(packet.psn, out.unacked) < 0) {
      this.#stale(); // Overtaken by newer ones: what it says is missing, or kept, need not be so any more.
      return;
    }
    let end = packet.psn;
    for (let i = 0; i < packet.payloadBytes * 8; i++) {
      if ((bytes[packet.payloadOffset + (i >>> 3)] & (1 << (i & 7))) === 0) continue;
      const psn = psnAdd(packet.psn, 1 + i);
      if (psnDiff(psn, out.newPsn) >= 0) break;
      this.#markKept(psn);
      end = psn;
    }
    this.#qp.host.counters[COUNTER.packet_seq_err]++;
    requester.lost(packet.psn, psnAdd(end, 1), LOSS_REPORTED);
  }

  /** A request is kept by the receiver and need not be sent again, except a READ or atomic, whose response may get lost as well. */
  #markKept(psn: number): void {
    const { out, recovery } = this.#requester;
    const index = out.find(psn, out.head);
    if (index >= 0 && out.kind[index & out.mask] === KIND_DATA) recovery.markKept(psn);
  }

  /**
   * Acknowledges SEND and WRITE PSNs up to and including `psn`. False when an unanswered READ or atomic stands before its end: its
   * response was lost.
   */
  #acknowledge(psn: number, now: number): boolean {
    const requester = this.#requester;
    const { out } = requester;
    const before = out.unacked;
    let complete = true;
    for (let index = out.head; index !== out.started && psnDiff(psn, out.unacked) >= 0; index = (index + 1) >>> 0) {
      const i = index & out.mask;
      const kind = out.kind[i];
      if (kind === KIND_LOCAL || psnDiff(out.unacked, out.lastPsn[i]) > 0) continue;
      if (kind !== KIND_DATA) {
        // Covered to its end or beyond: the answer cannot come any more. Covered in part: says nothing.
        complete = psnDiff(psn, out.lastPsn[i]) < 0;
        break;
      }
      out.unacked = psnDiff(psn, out.lastPsn[i]) < 0 ? psnAdd(psn, 1) : psnAdd(out.lastPsn[i], 1);
      out.unacked = requester.recovery.advance(out.unacked);
    }
    if (out.unacked !== before) requester.progress(now);
    return complete;
  }

  /** An acknowledgement up to `psn` has jumped past an unanswered READ or atomic. */
  #impliedNak(psn: number): void {
    const { out } = this.#requester;
    this.#qp.host.counters[COUNTER.implied_nak_seq_err]++;
    this.#requester.lost(out.unacked, psnAdd(psn, 1), LOSS_REPORTED);
  }

  /** A READ response or atomic answer. */
  #receiveData(packet: RocePacket, bytes: Uint8Array, kind: number, now: number): void {
    const requester = this.#requester;
    const { out, recovery } = requester;
    const { psn } = packet;
    if (psnDiff(psn, out.unacked) < 0 || recovery.isDelivered(psn)) {
      this.#stale();
      return;
    }
    if (packet.opcode !== RC_READ_RESPONSE_MIDDLE && syndromeKind(packet.syndrome) !== SYNDROME_KIND_ACK) {
      requester.completeInError(STATUS_BAD_RESP_ERR, packet.syndrome);
      return;
    }
    // The responder works in order: what it answers proves that earlier SENDs and WRITEs were executed.
    const state = this.#qp.attributes.state;
    if (psn !== out.unacked) this.#acknowledge(psnAdd(psn, -1), now);
    if (this.#qp.attributes.state !== state) return;
    const isNext = psn === out.unacked;
    if (!isNext) {
      this.#qp.host.counters[COUNTER.read_response_gaps]++;
      requester.lost(out.unacked, recovery.goesBack ? out.newPsn : psn, LOSS_REPORTED);
      if (recovery.goesBack || this.#qp.attributes.state !== state) return;
    }
    const index = out.find(psn, out.head);
    if (index < 0 || out.kind[index & out.mask] !== kind) {
      this.#badResponse(isNext);
      return;
    }
    if (!this.#place(packet, bytes, index, isNext)) return;
    if (isNext) {
      out.unacked = psnAdd(psn, 1);
      requester.progress(now);
      return;
    }
    recovery.markDelivered(psn);
    if (psn === out.lastPsn[index & out.mask]) this.#qp.probe.answered(index);
  }

  /** An answer of another kind than the request: an error of the peer, if it is about the oldest request; else ignored. */
  #badResponse(isNext: boolean): void {
    if (isNext) this.#requester.completeInError(STATUS_BAD_RESP_ERR, 0);
    else this.#stale();
  }

  /** Copies the answer into the work request's buffers. False when that cannot be done; the QP has failed or the packet is dropped. */
  #place(packet: RocePacket, bytes: Uint8Array, index: number, isNext: boolean): boolean {
    const { out } = this.#requester;
    if (this.#sinkIndex !== index || !this.#sink.stillValid) {
      this.#sq.read(index, this.#wqe);
      const { keys } = this.#qp.host;
      if (!this.#sink.load(this.#wqe.sges, keys, this.#qp.pd, ACCESS_LOCAL_WRITE)) {
        if (isNext) this.#requester.completeInError(STATUS_LOC_PROT_ERR, 0);
        return false;
      }
      this.#sinkIndex = index;
    }
    if (packet.info.kind === OP_ATOMIC_ACK) {
      writeLittleEndian(this.#atomicResult, packet.origHigh, packet.origLow);
      this.#sink.scatter(0, ATOMIC_BYTES, this.#atomicResult, 0);
      return true;
    }
    // The PSN alone decides which bytes these are: a replay may begin anywhere, with whatever FIRST, MIDDLE or ONLY its sender chooses.
    const i = index & out.mask;
    const offset = ((packet.psn - out.firstPsn[i]) & 0xffffff) * this.#qp.mtuBytes;
    const expected = packet.psn === out.lastPsn[i] ? this.#wqe.messageBytes - offset : this.#qp.mtuBytes;
    if (packet.payloadBytes !== expected) {
      this.#badResponse(isNext);
      return false;
    }
    this.#sink.scatter(offset, expected, bytes, packet.payloadOffset);
    return true;
  }
}

function writeLittleEndian(to: Uint8Array, high: number, low: number): void {
  for (let i = 0; i < 4; i++) {
    to[i] = low >>> (8 * i);
    to[4 + i] = high >>> (8 * i);
  }
}
