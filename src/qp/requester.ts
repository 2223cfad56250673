/**
 * The requester: takes send work requests in turn and decides which packet is the next (IBTA vol. 1 §9.7.2, §9.7.3.1). Owns the cursor and the
 * send PSNs. What comes back is judged by the completer, what is sent again is decided by the retransmitter.
 *
 * READs longer than the window are asked for in several requests, each a READ of its own on the wire with the PSNs the one request would
 * have had, so that responses never outrun our receive buffer.
 */

import { UNPACED } from '../dcqcn/pacer.js';
import type { RateControl } from '../dcqcn/rate-control.js';
import { COUNTER } from '../memory/ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  QPS_SQD,
  SEND_FENCE,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_LOC_QP_OP_ERR,
  STATUS_SUCCESS,
  WR_ATOMIC_CMP_AND_SWP,
  WR_ATOMIC_FETCH_AND_ADD,
  WR_BIND_MW,
  WR_LOCAL_INV,
  WR_RDMA_READ,
  WR_REG_MR,
} from '../memory/ring/enums.js';
import { WAIT_FENCE, WAIT_NOTHING, WAIT_PACING, WAIT_READ_LIMIT, WAIT_WINDOW } from '../memory/ring/telemetry-page.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import { INT_DATA_CREDIT, INT_NONE } from '../packet/int-trailer.js';
import { psnAdd, psnDiff, psnOffset } from '../packet/psn.js';
import { ATOMIC_BYTES } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import { executeLocal } from './local-operations.js';
import { KIND_ATOMIC, KIND_DATA, KIND_LOCAL, KIND_READ, type Outstanding } from './outstanding.js';
import { writeAtomicRequest, writeReadRequest } from './request-packets.js';
import type { Retirement } from './retirement.js';
import type { Retransmitter } from './retransmitter.js';
import { RC_DATA_OPCODES, Segmenter } from './segmenter.js';
import type { SendSide } from './send-side.js';
import type { QpShared } from './shared.js';

const TX_RETRANSMITTED = COUNTER.tx_retransmitted;

/**
 * Inside a message an acknowledgement is asked for this often: every quarter of a window, so that the window keeps moving, and at most this
 * many packets apart. Each answer wakes this side up, which costs more than several packets do.
 */
const ACKS_PER_WINDOW = 4;
const ACK_EVERY_PACKETS_MAX = 128;
/** No message may take more PSNs than this: half of what PSN comparison can tell apart. 1 GiB at the smallest MTU. */
const MESSAGE_PSNS_MAX = 1 << 22;

/** The sending half of a reliable connection. */
export class Requester {
  readonly #qp: QpShared;
  readonly #sq: SendQueue;
  readonly #out: Outstanding;
  readonly #retirement: Retirement;
  readonly #retransmitter: Retransmitter;
  readonly #segmenter: Segmenter;
  #packetsSinceAckReq = 0;
  /** The rate control, where it limits the bytes in flight. */
  #windowed: RateControl | undefined;
  readonly #wake = () => this.#qp.schedule();

  constructor(qp: QpShared, side: SendSide) {
    this.#qp = qp;
    this.#sq = side.sendQueue;
    this.#out = side.out;
    this.#retirement = side.retirement;
    this.#retransmitter = side.retransmitter;
    this.#segmenter = new Segmenter(qp, side.sendQueue, RC_DATA_OPCODES);
  }

  /** RTR to RTS: from here on requests may be sent. */
  start(): void {
    this.#retirement.start();
    this.#retransmitter.start();
    this.#segmenter.reset();
    this.#packetsSinceAckReq = 0;
  }

  /** Completes everything that is posted with WR_FLUSH_ERR. */
  flush(): void {
    this.#retransmitter.stopTimers();
    this.#retirement.flush();
    this.#waits(WAIT_NOTHING);
  }

  /** Back to RESET: what is posted disappears without completions. */
  discard(): void {
    this.#retransmitter.stopTimers();
    this.#retirement.discard();
  }

  /** Some of what was posted has not been sent, or is to be sent again. */
  get hasUnsent(): boolean {
    return this.#out.cursor !== this.#sq.producer;
  }

  /** The rate control has changed: its window counts. */
  applyRateControl(rate: RateControl): void {
    this.#windowed = rate.usesWindow ? rate : undefined;
  }

  /** Packets that peer and recovery scheme allow in flight. */
  get windowPacketsMax(): number {
    return Math.min(this.#qp.budget.windowPackets, this.#retransmitter.recovery.inFlightMax);
  }

  /** Packets that may be in flight now: one at least, and no more than peer, recovery scheme and rate control allow. */
  #windowPackets(now: number): number {
    const packets = this.windowPacketsMax;
    if (this.#windowed === undefined) return packets;
    const onTheWay = Math.max(1, Math.floor(this.#windowed.windowBytes(now) / this.#qp.mtuBytes));
    return Math.min(packets, onTheWay + this.#retransmitter.recovery.arrived);
  }

  /** Sends at most one packet into the batch; false when there is nothing to send now. */
  emit(batch: TxBatch, now: number): boolean {
    const { budget } = this.#qp;
    if (!budget.isCrowded) return this.#emitNext(batch, now);
    const hasSent = this.#emitNext(batch, now);
    if (!hasSent) budget.endTurn();
    this.settle();
    return hasSent;
  }

  /** Something was sent, acknowledged or given up: what is in flight counts against what the peer's socket can hold. Only while connected. */
  settle(): void {
    const { budget } = this.#qp;
    if (budget.isCrowded) budget.settle(this.#out.inFlight, this.#retransmitter.isSilent);
  }

  #emitNext(batch: TxBatch, now: number): boolean {
    const retransmitter = this.#retransmitter;
    if (retransmitter.waitsForReceiver) return false;
    const out = this.#out;
    if (this.#qp.congestion.pacer.opensNs > now) return this.hasUnsent && this.#waits(WAIT_PACING);
    const resend = retransmitter.recovery.nextResend(out.unacked, out.sendPsn);
    if (resend >= 0) {
      const index = out.find(resend, out.head);
      if (index >= 0 && this.#emitPacket(index, resend, batch, now) > 0) return true;
    }
    for (;;) {
      if (this.#retirement.hasFailed(out.cursor)) return false;
      if (out.cursor === out.started && !this.#startNext()) return false;
      const index = out.cursor;
      if (out.kindOf(index) === KIND_LOCAL) {
        out.passCursor();
        this.#retirement.retire();
        continue;
      }
      const psns = this.#emitPacket(index, out.sendPsn, batch, now);
      if (psns === 0) return false;
      out.sent(psns);
      return true;
    }
  }

  // ---- starting work requests

  /** Starts the next work request of the ring: checks it, gives it PSNs or executes it here. False: nothing to start now. */
  #startNext(): boolean {
    const out = this.#out;
    const qp = this.#qp;
    const index = out.started;
    if (index === this.#sq.producer || qp.attributes.state === QPS_SQD) return this.#waits(WAIT_NOTHING);
    const segmenter = this.#segmenter;
    segmenter.read(index);
    const { wqe } = segmenter;
    if ((wqe.flags & SEND_FENCE) !== 0 && out.reads.count > 0) return this.#waits(WAIT_FENCE);
    if (segmenter.isData) return this.#startMessage(KIND_DATA, 0);
    switch (wqe.opcode) {
      case WR_RDMA_READ:
        if (qp.attributes.maxRdAtomic === 0) return this.#failStarting(STATUS_LOC_QP_OP_ERR);
        return this.#startMessage(KIND_READ, ACCESS_LOCAL_WRITE);
      case WR_ATOMIC_CMP_AND_SWP:
      case WR_ATOMIC_FETCH_AND_ADD:
        if (qp.attributes.maxRdAtomic === 0) return this.#failStarting(STATUS_LOC_QP_OP_ERR);
        if (wqe.messageBytes !== ATOMIC_BYTES) return this.#failStarting(STATUS_LOC_LEN_ERR);
        return this.#startMessage(KIND_ATOMIC, ACCESS_LOCAL_WRITE);
      case WR_LOCAL_INV:
        // Waits for all earlier work: what it takes away may still be in use by it.
        return out.head === index ? this.#executeLocal() : this.#waits(WAIT_FENCE);
      case WR_BIND_MW:
      case WR_REG_MR:
        return this.#executeLocal();
      default:
        return this.#failStarting(STATUS_LOC_QP_OP_ERR);
    }
  }

  #startMessage(kind: number, required: number): boolean {
    const segmenter = this.#segmenter;
    if (!segmenter.resolve(required)) return this.#failStarting(STATUS_LOC_PROT_ERR);
    const psns = kind === KIND_ATOMIC ? 1 : segmenter.packetCount;
    if (psns > MESSAGE_PSNS_MAX) return this.#failStarting(STATUS_LOC_LEN_ERR);
    this.#out.start(kind, psns);
    return true;
  }

  #executeLocal(): boolean {
    const status = executeLocal(this.#qp, this.#segmenter.wqe);
    if (status !== STATUS_SUCCESS) return this.#failStarting(status);
    const out = this.#out;
    const { probe } = this.#qp;
    probe.sent(out.started, true, true);
    probe.answered(out.started);
    out.startLocal();
    return true;
  }

  #failStarting(status: number): false {
    this.#retirement.fail(this.#out.started, status);
    return false;
  }

  /** Makes the work request at `index` the current one. False, and the request fails, when its buffers are gone. */
  #load(index: number): boolean {
    const segmenter = this.#segmenter;
    if (segmenter.holds(index)) return true;
    segmenter.read(index);
    if (segmenter.resolve(this.#out.kindOf(index) === KIND_DATA ? 0 : ACCESS_LOCAL_WRITE)) return true;
    this.#retirement.fail(index, STATUS_LOC_PROT_ERR);
    return false;
  }

  // ---- packets

  /** Emits the request packet with this PSN. Returns the PSNs it stands for (a READ request: its responses), or 0 when it has to wait. */
  #emitPacket(index: number, psn: number, batch: TxBatch, now: number): number {
    if (!this.#load(index)) return 0;
    const out = this.#out;
    let window = this.#windowPackets(now);
    const used = psnDiff(psn, out.unacked);
    const { budget } = this.#qp;
    const { takesTurns } = budget;
    if (takesTurns && used < window) {
      // The last packet of a turn asks for an answer, as that of a window does.
      window = Math.min(window, used + budget.turnPackets(this.#wake));
    }
    let psns = 1;
    let asksForAnswer = true;
    const kind = out.kindOf(index);
    if (kind === KIND_DATA) {
      if (used >= window) return this.#waitForWindow(now, WAIT_WINDOW);
      asksForAnswer = this.#emitData(index, psn, batch, used, window, now);
    } else if (kind === KIND_READ) {
      psns = this.#emitRead(index, psn, batch, used, window);
      if (psns === 0) return this.#waitForWindow(now, this.#mayAskMore ? WAIT_WINDOW : WAIT_READ_LIMIT);
    } else {
      if (used >= window) return this.#waitForWindow(now, WAIT_WINDOW);
      if (out.reads.endOf(psn) < 0) {
        if (!this.#mayAskMore) return this.#waitForWindow(now, WAIT_READ_LIMIT);
        out.reads.push(psn, psn);
      }
      writeAtomicRequest(this.#qp, batch, this.#segmenter.wqe, psn);
    }
    if (takesTurns) budget.sent(psns);
    this.#qp.dataSent(batch, now);
    const { probe } = this.#qp;
    const isNew = psn === out.newPsn;
    this.#retransmitter.sent(psn, psns, isNew ? psnAdd(psn, psns) : out.newPsn, now);
    if (isNew) {
      const i = index & out.mask;
      probe.sent(index, psn === out.firstPsn[i], psnAdd(psn, psns - 1) === out.lastPsn[i]);
    } else {
      probe.resent();
      this.#qp.host.counters[TX_RETRANSMITTED]++;
      this.#retransmitter.resent(psn, psns);
    }
    if (asksForAnswer) this.#retransmitter.asked(psnAdd(psn, psns - 1), now);
    return psns;
  }

  #waitForWindow(now: number, cause: number): 0 {
    this.#waits(cause);
    this.#retransmitter.blocked(now);
    return 0;
  }

  /** Another READ or atomic may be outstanding. */
  get #mayAskMore(): boolean {
    return this.#out.reads.count < this.#qp.attributes.maxRdAtomic;
  }

  #waits(cause: number): false {
    this.#qp.probe.waits(cause);
    return false;
  }

  /** Returns whether the packet asks for an acknowledgement. */
  #emitData(index: number, psn: number, batch: TxBatch, used: number, window: number, now: number): boolean {
    const out = this.#out;
    const { rtt, recovery } = this.#retransmitter;
    const i = index & out.mask;
    const isNew = psn === out.newPsn;
    const isLast = psn === out.lastPsn[i];
    const place = psnOffset(psn, out.firstPsn[i]);
    const bytes = this.#segmenter.payloadBytes(place, isLast);
    this.#packetsSinceAckReq++;
    const mustAsk = this.#retransmitter.takeMustAsk();
    const ackReq =
      isLast ||
      mustAsk ||
      used + 1 >= window ||
      this.#packetsSinceAckReq >= Math.min(window / ACKS_PER_WINDOW, ACK_EVERY_PACKETS_MAX) ||
      this.#windowed !== undefined ||
      (this.#qp.budget.takesTurns && this.#qp.congestion.pacer !== UNPACED) ||
      this.#qp.dataIntKind !== INT_NONE ||
      rtt.isDue(bytes) ||
      (!isNew && !recovery.goesBack);
    if (ackReq) this.#packetsSinceAckReq = 0;
    if (isNew) rtt.onSent(psn, bytes, ackReq, now);
    const { path } = this.#qp;
    if (path.isSpread) path.choose(recovery.nextWay(now));
    if (this.#qp.dataIntKind === INT_DATA_CREDIT) this.#segmenter.wanted = this.#wantedAfter(psn);
    this.#segmenter.trustsProgram = isNew;
    this.#segmenter.write(batch, place, isLast, ackReq, psn, now);
    return ackReq;
  }

  /** Packets that are to be sent after `psn`: the rest of what has been started, and a window for what has not, whose size is not known yet. */
  #wantedAfter(psn: number): number {
    const out = this.#out;
    const last = out.lastPsn[(out.started - 1) & out.mask];
    const started = Math.max(0, psnDiff(last, psn) - this.#retransmitter.recovery.arrived);
    return out.started === this.#sq.producer ? started : started + this.windowPacketsMax;
  }

  /** Asks for as much as may be in flight. Returns the PSNs asked for, 0 when it has to wait. */
  #emitRead(index: number, psn: number, batch: TxBatch, used: number, window: number): number {
    const out = this.#out;
    const { wqe } = this.#segmenter;
    const i = index & out.mask;
    let end = out.reads.endOf(psn);
    if (end < 0) {
      const left = psnOffset(out.lastPsn[i], psn) + 1;
      const room = window - used;
      // Half a window at a time at least: small pieces would cost a request each for a few packets.
      if (room <= 0 || (room < left && room < window >>> 1)) return 0;
      if (!this.#mayAskMore) return 0;
      end = psnAdd(psn, Math.min(left, room) - 1);
      out.reads.push(psn, end);
    } else if (!this.#retransmitter.recovery.goesBack) end = this.#missingRunEnd(psn, end);
    const { mtuBytes } = this.#qp;
    const offset = psnOffset(psn, out.firstPsn[i]) * mtuBytes;
    const psns = psnOffset(end, psn) + 1;
    const bytes = end === out.lastPsn[i] ? wqe.messageBytes - offset : psns * mtuBytes;
    writeReadRequest(this.#qp, batch, wqe, psn, offset, bytes);
    return psns;
  }

  /**
   * Selective repeat asks again only for the run of responses that it counts as lost. If none of a request has come, the request itself may be lost:
   * then it is sent again as it was. A responder takes a part of it for a message, and its MSN would run ahead (IBTA vol. 1 §9.7.7).
   */
  #missingRunEnd(psn: number, end: number): number {
    const { recovery } = this.#retransmitter;
    if (this.#out.reads.hasStart(psn) && !this.#hasDelivered(psn, end)) return end;
    let last = psn;
    while (last !== end && recovery.nextResend(psnAdd(last, 1), psnAdd(last, 2)) >= 0) last = psnAdd(last, 1);
    return last;
  }

  #hasDelivered(first: number, last: number): boolean {
    const { recovery } = this.#retransmitter;
    for (let psn = first; psnDiff(psn, last) <= 0; psn = psnAdd(psn, 1)) if (recovery.isDelivered(psn)) return true;
    return false;
  }
}
