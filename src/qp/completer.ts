/**
 * The completer: processes responses (IBTA vol. 1 §9.7.5, §9.7.6). It acknowledges PSNs, places READ and atomic
 * results, and informs the retransmitter of losses.
 */

import { COUNTER } from '../memory/ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  EVENT_QP_UNSENT_RESPONSE,
  STATUS_BAD_RESP_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_REM_ACCESS_ERR,
  STATUS_REM_INV_REQ_ERR,
  STATUS_REM_OP_ERR,
} from '../memory/ring/enums.js';
import { type SendQueue, SendWqe } from '../memory/ring/work-queue.js';
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
import { psnAdd, psnDiff, psnOffset } from '../packet/psn.js';
import { ATOMIC_BYTES, type RocePacket } from '../packet/roce.js';
import { LOSS_DROPPED, LOSS_REPORTED } from '../retransmit/recovery.js';
import { writeHostU64 } from './atomic.js';
import { KIND_ATOMIC, KIND_DATA, KIND_PLACEMENT, KIND_READ, type Outstanding } from './outstanding.js';
import type { Retransmitter } from './retransmitter.js';
import type { SendSide } from './send-side.js';
import type { QueuePairParts } from './transport.js';
import type { WorkRequestCompletion } from './work-request-completion.js';

type Parts = Pick<QueuePairParts, 'host' | 'pd' | 'attributes' | 'link' | 'congestion' | 'probe'>;

export class Completer {
  readonly #parts: Parts;
  readonly #sq: SendQueue;
  readonly #out: Outstanding;
  readonly #completion: WorkRequestCompletion;
  readonly #retransmitter: Retransmitter;
  readonly #wqe = new SendWqe();
  readonly #sink = new SgeCursor();
  #sinkIndex = -1;
  /** An atomic's result in host order (little-endian), on its way to memory. */
  readonly #atomicResult = new Uint8Array(ATOMIC_BYTES);

  constructor(parts: Parts, side: SendSide) {
    this.#parts = parts;
    this.#sq = side.sendQueue;
    this.#out = side.out;
    this.#completion = side.completion;
    this.#retransmitter = side.retransmitter;
  }

  /** Drops the buffers of the READ that was placed last: the next one may have the same index. */
  reset(): void {
    this.#sinkIndex = -1;
  }

  receive(packet: RocePacket, bytes: Uint8Array, now: number): void {
    const out = this.#out;
    // A SACK names a missing packet: at most the next one to be sent.
    const next = packet.opcode === VENDOR_SACK ? psnAdd(out.newPsn, 1) : out.newPsn;
    if (psnDiff(packet.psn, next) >= 0) {
      this.#unsent();
      return;
    }
    if (packet.trailerBytes > 0) {
      const end = packet.trailerOffset + packet.trailerBytes;
      this.#parts.congestion.control.onEcho(bytes, end, now);
      this.#retransmitter.onEcho(bytes, end);
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
    this.#parts.host.counters[COUNTER.stale_response]++;
  }

  /** It names a PSN that was never sent: no honest peer does so, and the report is ignored. */
  #unsent(): void {
    this.#parts.host.counters[COUNTER.unsent_response]++;
    this.#parts.link.warn(EVENT_QP_UNSENT_RESPONSE);
  }

  #receiveAck(packet: RocePacket, bytes: Uint8Array, now: number): void {
    const out = this.#out;
    const { counters } = this.#parts.host;
    const kind = syndromeKind(packet.syndrome);
    if (kind === SYNDROME_KIND_ACK) {
      if (psnDiff(packet.psn, out.unacked) < 0) this.#stale();
      else if (!this.#acknowledge(packet.psn, now)) this.#impliedNak(packet.psn);
      return;
    }
    // Any NAK acknowledges everything before its PSN.
    const before = psnAdd(packet.psn, -1);
    const reachesBefore = psnDiff(before, out.unacked) < 0 || this.#acknowledge(before, now);
    if (!reachesBefore) {
      this.#impliedNak(before);
      if (packet.opcode !== VENDOR_SACK) return;
    }
    if (kind === SYNDROME_KIND_RNR) {
      counters[COUNTER.rnr_nak_received]++;
      if (packet.psn === out.unacked) this.#receiverNotReady(packet, now);
    } else if (kind !== SYNDROME_KIND_NAK) this.#stale();
    else if (packet.opcode === VENDOR_SACK) this.#receiveSack(packet, bytes);
    else if (packet.syndrome === NAK_PSN_SEQUENCE) {
      counters[COUNTER.packet_seq_err]++;
      this.#sequenceError(packet.psn);
    } else this.#fatalNak(packet);
  }

  /**
   * NAK 0x60: everything from `psn` on is to be retransmitted. Go-back-0 names the start of a message, which may lie
   * behind `unacked`; when `psn` lies ahead, inside a READ, responses before it are missing as well.
   */
  #sequenceError(psn: number): void {
    const out = this.#out;
    const { recovery } = this.#retransmitter;
    const oldest = recovery.restartsMessages && !out.isIdle ? out.firstPsn[out.head & out.mask] : out.unacked;
    if (psnDiff(psn, oldest) < 0) this.#stale();
    else this.#retransmitter.lost(psnDiff(psn, out.unacked) > 0 ? out.unacked : psn, out.newPsn, LOSS_DROPPED);
  }

  #receiverNotReady({ psn, syndrome }: RocePacket, now: number): void {
    this.#retransmitter.receiverNotReady(psn, RNR_TIMER_NS[syndrome & 0x1f], syndrome, now);
  }

  #fatalNak(packet: RocePacket): void {
    const completion = this.#completion;
    const { counters } = this.#parts.host;
    if (packet.psn !== this.#out.unacked) {
      this.#stale(); // It names a packet that was acknowledged, or is inside a READ whose earlier responses were lost.
      return;
    }
    if (packet.syndrome === NAK_INVALID_REQUEST) {
      counters[COUNTER.req_remote_invalid_request]++;
      completion.completeInError(STATUS_REM_INV_REQ_ERR, packet.syndrome);
    } else if (packet.syndrome === NAK_REMOTE_ACCESS) {
      counters[COUNTER.req_remote_access_errors]++;
      completion.completeInError(STATUS_REM_ACCESS_ERR, packet.syndrome);
    } else {
      counters[COUNTER.req_remote_operation_errors]++;
      completion.completeInError(STATUS_REM_OP_ERR, packet.syndrome);
    }
  }

  /**
   * SACK: BTH.PSN is missing; bit i reports that PSN + 1 + i has arrived. Missing packets below the highest reported
   * one are lost.
   */
  #receiveSack(packet: RocePacket, bytes: Uint8Array): void {
    const out = this.#out;
    if (psnDiff(packet.psn, out.unacked) < 0) {
      this.#stale(); // A stale report: the state of its packets may have changed.
      return;
    }
    let end = packet.psn;
    for (let i = 0; i < packet.payloadBytes * 8; i++) {
      if ((bytes[packet.payloadOffset + (i >>> 3)] & (1 << (i & 7))) === 0) continue;
      const psn = psnAdd(packet.psn, 1 + i);
      if (psnDiff(psn, out.newPsn) >= 0) {
        // The peer has buffered a forged packet; its report on ours is valid.
        this.#unsent();
        break;
      }
      this.#markSacked(psn);
      end = psn;
    }
    this.#parts.host.counters[COUNTER.packet_seq_err]++;
    this.#retransmitter.lost(packet.psn, psnAdd(end, 1), LOSS_REPORTED);
  }

  /**
   * A request is kept by the receiver and need not be retransmitted, except a READ or atomic, whose response may get
   * lost as well.
   */
  #markSacked(psn: number): void {
    const out = this.#out;
    const index = out.find(psn, out.head);
    if (index >= 0 && out.kindOf(index) === KIND_DATA) this.#retransmitter.recovery.markSacked(psn);
  }

  /** False if an unanswered READ or atomic is before its end: its response was lost. */
  #acknowledge(psn: number, now: number): boolean {
    const out = this.#out;
    const before = out.unacked;
    const complete = out.acknowledge(psn, this.#retransmitter.recovery);
    if (out.unacked !== before) this.#retransmitter.progress(now);
    return complete;
  }

  /** An acknowledgement up to `psn` has jumped past an unanswered READ or atomic. */
  #impliedNak(psn: number): void {
    this.#parts.host.counters[COUNTER.implied_nak_seq_err]++;
    this.#retransmitter.lost(this.#out.unacked, psnAdd(psn, 1), LOSS_REPORTED);
  }

  #receiveData(packet: RocePacket, bytes: Uint8Array, kind: number, now: number): void {
    const out = this.#out;
    const retransmitter = this.#retransmitter;
    const { recovery } = retransmitter;
    const { psn } = packet;
    if (psnDiff(psn, out.unacked) < 0 || recovery.isDelivered(psn)) {
      this.#stale();
      return;
    }
    if (packet.opcode !== RC_READ_RESPONSE_MIDDLE && syndromeKind(packet.syndrome) !== SYNDROME_KIND_ACK) {
      this.#completion.completeInError(STATUS_BAD_RESP_ERR, packet.syndrome);
      return;
    }
    // The responder works in order: an answer proves that earlier SENDs and WRITEs were executed.
    const state = this.#parts.attributes.state;
    if (psn !== out.unacked) this.#acknowledge(psnAdd(psn, -1), now);
    if (this.#parts.attributes.state !== state) return;
    const isNext = psn === out.unacked;
    if (!isNext) {
      this.#parts.host.counters[COUNTER.read_response_gaps]++;
      if (recovery.goesBack) {
        retransmitter.lost(out.unacked, out.newPsn, LOSS_REPORTED);
        return;
      }
    }
    const index = out.find(psn, out.head);
    if (index < 0 || !isAnsweredBy(out.kindOf(index), kind)) {
      this.#badResponse(isNext);
      return;
    }
    if (!this.#place(packet, bytes, index, isNext)) return;
    if (isNext) {
      out.answer();
      retransmitter.progress(now);
      return;
    }
    recovery.markDelivered(psn);
    retransmitter.lost(out.unacked, psnAdd(psn, 1), LOSS_REPORTED);
    if (psn === out.lastPsn[index & out.mask]) this.#parts.probe.current.answered(index);
  }

  /**
   * An answer of another kind than the request: an error of the peer, if it is about the oldest request; else ignored.
   */
  #badResponse(isNext: boolean): void {
    if (isNext) this.#completion.completeInError(STATUS_BAD_RESP_ERR, 0);
    else this.#stale();
  }

  /** False when that cannot be done; the QP has failed or the packet is dropped. */
  #place(packet: RocePacket, bytes: Uint8Array, index: number, isNext: boolean): boolean {
    const out = this.#out;
    if (out.kindOf(index) === KIND_PLACEMENT) {
      if (packet.payloadBytes === 0) return true;
      this.#badResponse(isNext);
      return false;
    }
    if (this.#sinkIndex !== index || !this.#sink.stillValid) {
      this.#sq.read(index, this.#wqe);
      const { keys } = this.#parts.host;
      if (!this.#sink.load(this.#wqe.sges, keys, this.#parts.pd, ACCESS_LOCAL_WRITE)) {
        if (isNext) this.#completion.completeInError(STATUS_LOC_PROT_ERR, 0);
        return false;
      }
      this.#sinkIndex = index;
    }
    if (packet.info.kind === OP_ATOMIC_ACK) {
      writeHostU64(this.#atomicResult, 0, packet.origHigh, packet.origLow);
      this.#sink.scatter(0, ATOMIC_BYTES, this.#atomicResult, 0);
      return this.#isPlaced(isNext);
    }
    // Only the PSN decides which bytes these are: a replay may begin anywhere, and its sender chooses FIRST, MIDDLE or
    // ONLY.
    const i = index & out.mask;
    const offset = psnOffset(packet.psn, out.firstPsn[i]) * this.#parts.link.mtuBytes;
    const expected = packet.psn === out.lastPsn[i] ? this.#wqe.messageBytes - offset : this.#parts.link.mtuBytes;
    if (packet.payloadBytes !== expected) {
      this.#badResponse(isNext);
      return false;
    }
    if (this.#parts.host.carriesPayload) this.#sink.scatter(offset, expected, bytes, packet.payloadOffset);
    return this.#isPlaced(isNext);
  }

  /** False: the memory of the request cannot be written. */
  #isPlaced(isNext: boolean): boolean {
    if (this.#sink.stillValid) return true;
    if (isNext) this.#completion.completeInError(STATUS_LOC_PROT_ERR, 0);
    return false;
  }
}

/** A READ response also answers FLUSH and ATOMIC WRITE. */
function isAnsweredBy(request: number, answer: number): boolean {
  return request === answer || (request === KIND_PLACEMENT && answer === KIND_READ);
}
