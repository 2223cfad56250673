/**
 * The requester: turns send work requests into packets (IBTA vol. 1 §9.7.2, §9.7.3.1). Owns the send PSNs, the cursor and the retry
 * state; what comes back is judged by the completer.
 *
 * A packet is made from the work request each time it is sent, first or again: nothing is kept for retransmission. READs longer than
 * the window are asked for in several requests, each a READ of its own on the wire with the PSNs the one request would have had, so that
 * responses never outrun our receive buffer.
 */

import type { RateControl } from '../dcqcn/rate-control.js';
import { SgeCursor } from '../memory/sge-cursor.js';
import * as op from '../packet/opcode.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import {
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  BTH_SOLICITED,
  writeAtomicEth,
  writeBth,
  writeIeth,
  writeImm,
  writeReth,
} from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import { LOSS_TIMEOUT, NO_REWIND, type SenderRecovery } from '../retransmit/recovery.js';
import { createSender, recoverySettings, STANDARD_RECOVERY, unpackRecovery } from '../retransmit/schemes.js';
import { ackTimeoutNs } from '../retransmit/timers.js';
import { Cqe } from '../ring/completion-ring.js';
import { COUNTER } from '../ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  EVENT_SQ_DRAINED,
  QPS_SQD,
  SEND_FENCE,
  SEND_INLINE,
  SEND_SIGNALED,
  SEND_SOLICITED,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_LOC_QP_OP_ERR,
  STATUS_MW_BIND_ERR,
  STATUS_RETRY_EXC_ERR,
  STATUS_SUCCESS,
  STATUS_WR_FLUSH_ERR,
  WR_ATOMIC_CMP_AND_SWP,
  WR_ATOMIC_FETCH_AND_ADD,
  WR_BIND_MW,
  WR_LOCAL_INV,
  WR_RDMA_READ,
  WR_RDMA_WRITE,
  WR_RDMA_WRITE_WITH_IMM,
  WR_REG_MR,
  WR_SEND,
  WR_SEND_WITH_IMM,
  WR_SEND_WITH_INV,
  wcOpcodeOf,
} from '../ring/enums.js';
import {
  WAIT_FENCE,
  WAIT_NOTHING,
  WAIT_PACING,
  WAIT_READ_LIMIT,
  WAIT_RNR,
  WAIT_WINDOW,
} from '../ring/telemetry-page.js';
import { type SendQueue, SendWqe } from '../ring/work-queue.js';
import { KIND_ATOMIC, KIND_DATA, KIND_LOCAL, KIND_READ, Outstanding } from './outstanding.js';
import { type RcShared, windowPackets } from './rc-shared.js';
import { createRttProbe, NO_RTT_PROBE, type RttProbe } from './rtt-probe.js';

const TX_DATA_PACKETS = COUNTER.tx_data_packets;
const TX_RETRANSMITTED = COUNTER.tx_retransmitted;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Inside a message an acknowledgement is asked for this often: every quarter of a window, so that the window keeps moving, and at most this
 * many packets apart. Each answer wakes this side up, which costs more than several packets do.
 */
const ACKS_PER_WINDOW = 4;
const ACK_EVERY_PACKETS_MAX = 128;
/** No message may take more PSNs than this: half of what PSN comparison can tell apart. 1 GiB at the smallest MTU. */
const MESSAGE_PSNS_MAX = 1 << 22;
const ATOMIC_BYTES = 8;

export class Requester {
  readonly #qp: RcShared;
  readonly #sq: SendQueue;
  readonly out: Outstanding;
  recovery: SenderRecovery = createSender(recoverySettings(STANDARD_RECOVERY));
  ackDeadlineNs = NEVER;
  /** When the timer of `ackDeadlineNs` started. */
  #ackStartNs = 0;
  /** While waiting for a receiver that was not ready nothing is sent. */
  rnrDeadlineNs = NEVER;
  retriesLeft = 0;
  rnrRetriesLeft = 0;
  /** A go-back retry is running and nothing has been acknowledged since: further reports of the same gap must not restart it. */
  retrying = false;
  /** The work request that failed while it was being sent; it completes with this status once everything before it has. */
  #failedIndex = -1;
  #failedStatus = STATUS_SUCCESS;
  readonly #wqe = new SendWqe();
  readonly #source = new SgeCursor();
  #loaded = -1;
  #packetsSinceAckReq = 0;
  /**
   * The newest PSN in flight that the peer was asked to answer. The retransmission timer runs only while one is outstanding: packets that
   * ask for nothing may stay unanswered for as long as a slow link takes to carry the next one that does.
   */
  #answerPsn = 0;
  #rtt: RttProbe = NO_RTT_PROBE;
  /** The rate control, where it limits the bytes in flight. */
  #windowed: RateControl | undefined;
  /** What the rate control has been told is acknowledged: everything before this PSN. */
  #reportedPsn = 0;
  readonly #cqe = new Cqe();

  constructor(qp: RcShared, sq: SendQueue) {
    this.#qp = qp;
    this.#sq = sq;
    this.out = new Outstanding(sq.depth);
  }

  /** RTR to RTS: from here on requests may be sent. */
  start(): void {
    const { attributes } = this.#qp;
    this.recovery = createSender(unpackRecovery(attributes.recovery, attributes.recoveryParameters));
    this.recovery.reset(attributes.sqPsn);
    this.out.reset(attributes.sqPsn, this.#sq.consumer);
    this.ackDeadlineNs = NEVER;
    this.rnrDeadlineNs = NEVER;
    this.retriesLeft = attributes.retryCnt;
    this.rnrRetriesLeft = attributes.rnrRetry;
    this.retrying = false;
    this.#failedIndex = -1;
    this.#loaded = -1;
    this.#answerPsn = psnAdd(attributes.sqPsn, -1);
    this.#reportedPsn = attributes.sqPsn;
  }

  /** The rate control has changed: round trips are measured as it wants, and its window counts. */
  obey(rate: RateControl): void {
    this.#rtt = createRttProbe(rate.rttSampleBytes);
    this.#windowed = rate.usesWindow ? rate : undefined;
  }

  get deadlineNs(): number {
    return Math.min(this.ackDeadlineNs, this.rnrDeadlineNs);
  }

  /** Sends at most one packet into the batch; false when there is nothing to send now. */
  emit(batch: TxBatch, now: number): boolean {
    if (this.rnrDeadlineNs !== NEVER) return false;
    const { out } = this;
    if (this.#qp.congestion.pacer.opensNs > now) return this.hasUnsent && this.#waits(WAIT_PACING);
    const resend = this.recovery.nextResend(out.unacked, out.sendPsn);
    if (resend >= 0) {
      const index = out.find(resend, out.head);
      if (index >= 0 && this.#emitPacket(index, resend, batch, now) > 0) return true;
    }
    for (;;) {
      if (out.cursor === this.#failedIndex) return false;
      if (out.cursor === out.started && !this.#startNext()) return false;
      const index = out.cursor;
      if (out.kind[index & out.mask] === KIND_LOCAL) {
        out.cursor = (index + 1) >>> 0;
        this.retire();
        continue;
      }
      const psns = this.#emitPacket(index, out.sendPsn, batch, now);
      if (psns === 0) return false;
      out.sendPsn = psnAdd(out.sendPsn, psns);
      if (psnDiff(out.sendPsn, out.newPsn) > 0) out.newPsn = out.sendPsn;
      if (psnDiff(out.sendPsn, out.lastPsn[index & out.mask]) > 0) out.cursor = (index + 1) >>> 0;
      return true;
    }
  }

  /** Starts the next work request of the ring: checks it, gives it PSNs or executes it here. False: nothing to start now. */
  #startNext(): boolean {
    const { out } = this;
    const qp = this.#qp;
    const index = out.started;
    if (index === this.#sq.producer || qp.attributes.state === QPS_SQD) return this.#waits(WAIT_NOTHING);
    this.#read(index);
    const wqe = this.#wqe;
    if ((wqe.flags & SEND_FENCE) !== 0 && out.reads.count > 0) return this.#waits(WAIT_FENCE);
    switch (wqe.opcode) {
      case WR_SEND:
      case WR_SEND_WITH_IMM:
      case WR_SEND_WITH_INV:
      case WR_RDMA_WRITE:
      case WR_RDMA_WRITE_WITH_IMM:
        return this.#startMessage(KIND_DATA, 0);
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
        if (out.head !== index) return this.#waits(WAIT_FENCE);
        return this.#finishLocal(qp.host.keys.invalidate(wqe.rkey, qp.pd, qp.qpn), STATUS_LOC_QP_OP_ERR);
      case WR_BIND_MW:
        return this.#finishLocal(this.#bind(), STATUS_MW_BIND_ERR);
      case WR_REG_MR:
        return this.#finishLocal(this.#fastRegister(), STATUS_LOC_QP_OP_ERR);
      default:
        return this.#failStarting(STATUS_LOC_QP_OP_ERR);
    }
  }

  #startMessage(kind: number, required: number): boolean {
    if (!this.#resolve(required)) return this.#failStarting(STATUS_LOC_PROT_ERR);
    const psns = kind === KIND_ATOMIC ? 1 : Math.max(1, Math.ceil(this.#wqe.messageBytes / this.#qp.mtuBytes));
    if (psns > MESSAGE_PSNS_MAX) return this.#failStarting(STATUS_LOC_LEN_ERR);
    this.out.start(kind, psns);
    return true;
  }

  #finishLocal(ok: boolean, failure: number): boolean {
    if (!ok) return this.#failStarting(failure);
    const { probe } = this.#qp;
    probe.sent(this.out.started, true, true);
    probe.answered(this.out.started);
    this.out.start(KIND_LOCAL, 0);
    return true;
  }

  #failStarting(status: number): false {
    this.#fail(this.out.started, status);
    return false;
  }

  /** The work request at `index` cannot go on. It completes in its turn; nothing is sent for it or after it. */
  #fail(index: number, status: number): void {
    this.#failedIndex = index;
    this.#failedStatus = status;
    this.retire();
  }

  #bind(): boolean {
    const wqe = this.#wqe;
    const sges = wqe.sges;
    if (sges.count > 1) return false;
    return this.#qp.host.keys.bind({
      window: wqe.handle,
      regionKey: sges.count === 0 ? 0 : sges.lkeys[0],
      newKey: wqe.rkey,
      baseHigh: wqe.remoteHigh,
      baseLow: wqe.remoteLow,
      lengthBytes: sges.count === 0 ? 0 : sges.lengths[0],
      access: wqe.access,
      qpn: this.#qp.qpn,
      pd: this.#qp.pd,
    });
  }

  /** REG_MR carries the part of the backing to map as its one SGE: address = offset, length = length. */
  #fastRegister(): boolean {
    const wqe = this.#wqe;
    const sges = wqe.sges;
    if (sges.count !== 1 || sges.high[0] >= 0x200000) return false;
    return this.#qp.host.keys.fastRegister(
      wqe.handle,
      this.#qp.pd,
      wqe.rkey,
      sges.high[0] * 0x1_0000_0000 + sges.low[0],
      sges.lengths[0],
      wqe.remoteHigh,
      wqe.remoteLow,
      wqe.access,
    );
  }

  #read(index: number): void {
    this.#sq.read(index, this.#wqe);
    this.#loaded = -1;
  }

  /** Resolves the local buffers of the work request that was read. */
  #resolve(required: number): boolean {
    const wqe = this.#wqe;
    if ((wqe.flags & SEND_INLINE) !== 0) {
      this.#source.loadPlain(this.#sq.bytes, wqe.inlineOffset, wqe.messageBytes);
    } else if (!this.#source.load(wqe.sges, this.#qp.host.keys, this.#qp.pd, required)) return false;
    this.#loaded = wqe.index;
    return true;
  }

  /** Makes the work request at `index` the current one. False, and the request fails, when its buffers are gone. */
  #load(index: number): boolean {
    if (this.#loaded === index && this.#source.stillValid) return true;
    this.#read(index);
    const required = this.out.kind[index & this.out.mask] === KIND_DATA ? 0 : ACCESS_LOCAL_WRITE;
    if (this.#resolve(required)) return true;
    this.#fail(index, STATUS_LOC_PROT_ERR);
    return false;
  }

  /** Emits the request packet with this PSN. Returns the PSNs it stands for (a READ request: its responses), or 0 when it has to wait. */
  #emitPacket(index: number, psn: number, batch: TxBatch, now: number): number {
    if (!this.#load(index)) return 0;
    const { out } = this;
    const window = this.#windowPackets(now);
    const used = psnDiff(psn, out.unacked);
    let psns = 1;
    let asksForAnswer = true;
    const kind = out.kind[index & out.mask];
    if (kind === KIND_DATA) {
      if (used >= window) return this.#waitForWindow(now, WAIT_WINDOW);
      asksForAnswer = this.#writeData(index, psn, batch, used, window, now);
    } else if (kind === KIND_READ) {
      psns = this.#writeRead(index, psn, batch, used, window);
      if (psns === 0) return this.#waitForWindow(now, this.#mayAskMore ? WAIT_WINDOW : WAIT_READ_LIMIT);
    } else {
      if (used >= window) return this.#waitForWindow(now, WAIT_WINDOW);
      if (out.reads.endOf(psn) < 0) {
        if (!this.#mayAskMore) return this.#waitForWindow(now, WAIT_READ_LIMIT);
        out.reads.push(psn, psn);
      }
      this.#writeAtomic(psn, batch);
    }
    this.#qp.dataSent(batch, now);
    const { probe } = this.#qp;
    if (psn === out.newPsn) {
      const i = index & out.mask;
      probe.sent(index, psn === out.firstPsn[i], psnAdd(psn, psns - 1) === out.lastPsn[i]);
    } else {
      probe.resent();
      this.#qp.host.counters[TX_RETRANSMITTED]++;
      for (let i = 0; i < psns; i++) this.recovery.onResent(psnAdd(psn, i), out.newPsn);
    }
    if (asksForAnswer) {
      const last = psnAdd(psn, psns - 1);
      if (psnDiff(last, this.#answerPsn) > 0) this.#answerPsn = last;
      if (this.ackDeadlineNs === NEVER) this.#armAckTimer(now);
    }
    return psns;
  }

  /** Nothing more may be in flight. The window may have shrunk since, so that nobody was asked for an answer: then time decides. */
  #waitForWindow(now: number, cause: number): 0 {
    this.#waits(cause);
    if (this.ackDeadlineNs === NEVER && this.out.inFlight > 0) this.#armAckTimer(now);
    return 0;
  }

  /** Some of what was posted has not been sent, or is to be sent again. */
  get hasUnsent(): boolean {
    return this.out.cursor !== this.#sq.producer;
  }

  /** Another READ or atomic may be outstanding. */
  get #mayAskMore(): boolean {
    return this.out.reads.count < this.#qp.attributes.maxRdAtomic;
  }

  #waits(cause: number): false {
    this.#qp.probe.waits(cause);
    return false;
  }

  /** Work requests posted and not complete. */
  get postedWqes(): number {
    return (this.#sq.producer - this.out.head) >>> 0;
  }

  /** Packets that may be in flight: one at least, and no more than peer, recovery scheme and rate control allow. */
  #windowPackets(now: number): number {
    const packets = Math.min(windowPackets(this.#qp.budget), this.recovery.inFlightMax);
    if (this.#windowed === undefined) return packets;
    return Math.min(packets, Math.max(1, Math.floor(this.#windowed.windowBytes(now) / this.#qp.mtuBytes)));
  }

  /** Returns whether the packet asks for an acknowledgement. */
  #writeData(index: number, psn: number, batch: TxBatch, used: number, window: number, now: number): boolean {
    const { out } = this;
    const wqe = this.#wqe;
    const mtu = this.#qp.mtuBytes;
    const i = index & out.mask;
    const isFirst = psn === out.firstPsn[i];
    const isLast = psn === out.lastPsn[i];
    const offset = ((psn - out.firstPsn[i]) & 0xffffff) * mtu;
    const bytes = isLast ? wqe.messageBytes - offset : mtu;
    const pad = -bytes & 3;
    let flags = BTH_MIGREQ | (pad << BTH_PAD_SHIFT);
    if (isLast && (wqe.flags & SEND_SOLICITED) !== 0 && wqe.opcode !== WR_RDMA_WRITE) flags |= BTH_SOLICITED;
    this.#packetsSinceAckReq++;
    const ackReq =
      isLast ||
      used + 1 >= window ||
      this.#packetsSinceAckReq >= Math.min(window / ACKS_PER_WINDOW, ACK_EVERY_PACKETS_MAX) ||
      this.#windowed !== undefined ||
      this.#rtt.isDue(bytes) ||
      (psn !== out.newPsn && !this.recovery.goesBack);
    if (ackReq) this.#packetsSinceAckReq = 0;
    if (psn === out.newPsn) this.#rtt.onSent(psn, bytes, ackReq, now);

    const start = batch.payloadOffset(batch.count);
    const b = batch.slab;
    let o = writeBth(
      b,
      start,
      dataOpcode(wqe.opcode, isFirst, isLast),
      flags,
      this.#qp.attributes.destQpn,
      ackReq,
      psn,
    );
    const isWrite = wqe.opcode === WR_RDMA_WRITE || wqe.opcode === WR_RDMA_WRITE_WITH_IMM;
    if (isFirst && isWrite) o = writeReth(b, o, wqe.remoteHigh, wqe.remoteLow, wqe.rkey, wqe.messageBytes);
    if (isLast) {
      if (wqe.opcode === WR_SEND_WITH_IMM || wqe.opcode === WR_RDMA_WRITE_WITH_IMM) o = writeImm(b, o, wqe.immediate);
      else if (wqe.opcode === WR_SEND_WITH_INV) o = writeIeth(b, o, wqe.immediate);
    }
    this.#source.gather(offset, bytes, b, o);
    o += bytes;
    for (let p = 0; p < pad; p++) b[o++] = 0;
    if (bytes > 0) this.#qp.host.counters[TX_DATA_PACKETS]++;
    this.#seal(batch, o);
    return ackReq;
  }

  /** Asks for as much as may be in flight. Returns the PSNs asked for, 0 when it has to wait. */
  #writeRead(index: number, psn: number, batch: TxBatch, used: number, window: number): number {
    const { out } = this;
    const wqe = this.#wqe;
    const mtu = this.#qp.mtuBytes;
    const i = index & out.mask;
    let end = out.reads.endOf(psn);
    if (end < 0) {
      const left = ((out.lastPsn[i] - psn) & 0xffffff) + 1;
      const room = window - used;
      // Half a window at a time at least: small pieces would cost a request each for a few packets.
      if (room <= 0 || (room < left && room < window >>> 1)) return 0;
      if (!this.#mayAskMore) return 0;
      end = psnAdd(psn, Math.min(left, room) - 1);
      out.reads.push(psn, end);
    } else if (!this.recovery.goesBack) end = this.#missingRunEnd(psn, end);
    const offset = ((psn - out.firstPsn[i]) & 0xffffff) * mtu;
    const psns = ((end - psn) & 0xffffff) + 1;
    const bytes = end === out.lastPsn[i] ? wqe.messageBytes - offset : psns * mtu;
    const low = wqe.remoteLow + offset;
    const high = (wqe.remoteHigh + Math.floor(low / 0x1_0000_0000)) >>> 0;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, op.RC_READ_REQUEST, BTH_MIGREQ, this.#qp.attributes.destQpn, true, psn);
    o = writeReth(b, o, high, low >>> 0, wqe.rkey, bytes);
    this.#seal(batch, o);
    return psns;
  }

  /** Selective repeat asks again only for the run of responses that it counts as lost. */
  #missingRunEnd(psn: number, end: number): number {
    let last = psn;
    while (last !== end && this.recovery.nextResend(psnAdd(last, 1), psnAdd(last, 2)) >= 0) last = psnAdd(last, 1);
    return last;
  }

  #writeAtomic(psn: number, batch: TxBatch): void {
    const wqe = this.#wqe;
    const isCompare = wqe.opcode === WR_ATOMIC_CMP_AND_SWP;
    const opcode = isCompare ? op.RC_COMPARE_SWAP : op.RC_FETCH_ADD;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, opcode, BTH_MIGREQ, this.#qp.attributes.destQpn, true, psn);
    o = writeAtomicEth(
      b,
      o,
      wqe.remoteHigh,
      wqe.remoteLow,
      wqe.rkey,
      isCompare ? wqe.swapHigh : wqe.compareAddHigh,
      isCompare ? wqe.swapLow : wqe.compareAddLow,
      isCompare ? wqe.compareAddHigh : 0,
      isCompare ? wqe.compareAddLow : 0,
    );
    this.#seal(batch, o);
  }

  #seal(batch: TxBatch, end: number): void {
    this.#qp.path.seal(batch, end, this.#qp.host.nextIpId(), this.#qp.dataEcn);
  }

  #armAckTimer(now: number): void {
    this.#ackStartNs = now;
    this.ackDeadlineNs = now + this.#timeoutNs;
    this.#qp.deadlineChanged();
  }

  get #timeoutNs(): number {
    return this.recovery.timeoutNs(ackTimeoutNs(this.#qp.attributes.timeout), this.out.inFlight);
  }

  // ---- what the completer reports

  /** Something more is acknowledged: `unacked` has advanced. Completes what is done and grants new retries. */
  progress(now: number): void {
    const { out } = this;
    out.unacked = this.recovery.advance(out.unacked);
    const rttNs = this.#rtt.onProgress(out.unacked, now);
    const packets = psnDiff(out.unacked, this.#reportedPsn);
    if (packets > 0) {
      this.#qp.congestion.onAcknowledged(packets * this.#qp.mtuBytes, rttNs, now);
      this.#reportedPsn = out.unacked;
    }
    if (psnDiff(out.unacked, out.sendPsn) > 0) out.moveCursor(out.unacked); // What was to be sent again has arrived after all.
    out.reads.trim(out.unacked);
    this.retriesLeft = this.#qp.attributes.retryCnt;
    this.rnrRetriesLeft = this.#qp.attributes.rnrRetry;
    this.retrying = false;
    this.ackDeadlineNs = NEVER;
    if (psnDiff(this.#answerPsn, out.unacked) >= 0 && this.rnrDeadlineNs === NEVER) this.#armAckTimer(now);
    this.retire();
    this.#qp.schedule();
  }

  /** PSNs [first, end) are known to be missing, or nothing was heard of them for a whole timeout. */
  lost(first: number, end: number, cause: number): void {
    const { out, recovery } = this;
    this.#rtt.cancel();
    if (this.rnrDeadlineNs !== NEVER) return; // The resend after the wait covers it; an early one would only be refused again.
    const index = out.find(first, out.head);
    if (index < 0) return;
    const counts = recovery.goesBack || cause === LOSS_TIMEOUT;
    if (counts) {
      if (this.retrying && cause !== LOSS_TIMEOUT) return;
      if (this.retriesLeft === 0) {
        this.#qp.host.counters[COUNTER.retry_exceeded_err]++;
        this.completeInError(STATUS_RETRY_EXC_ERR, 0);
        return;
      }
      this.retriesLeft--;
      this.retrying = true;
    }
    // After silence the first packet asks what has arrived: the one that would, the last, may be lost each time, behind the same burst.
    if (cause === LOSS_TIMEOUT) this.#packetsSinceAckReq = ACK_EVERY_PACKETS_MAX;
    const resume = recovery.onLoss(first, end, out.firstPsn[index & out.mask], out.newPsn, cause);
    if (resume !== NO_REWIND) this.rewind(resume);
    this.#qp.schedule();
  }

  /** Sending goes on at `psn`. Only go-back-0 goes back behind what was acknowledged. */
  rewind(psn: number): void {
    const { out } = this;
    const counters = this.#qp.host.counters;
    const beyond = psnDiff(out.sendPsn, psn) - 1;
    if (beyond >= 0 && out.kind[out.find(psn, out.head) & out.mask] === KIND_DATA) {
      counters[COUNTER.retry_rewinds]++;
      counters[COUNTER.retry_rewind_packets] += beyond;
    }
    if (psnDiff(psn, out.unacked) < 0) {
      out.unacked = psn;
      out.reads.dropFrom(psn);
    }
    this.#goBack(psn);
  }

  #goBack(psn: number): void {
    this.out.moveCursor(psn);
    if (psnDiff(this.#answerPsn, psn) >= 0) this.#answerPsn = psnAdd(psn, -1);
  }

  /** The receiver was not ready for `psn`: everything waits, then goes on there. */
  waitForReceiver(psn: number, untilNs: number): void {
    this.#rtt.cancel();
    this.rnrDeadlineNs = untilNs;
    this.ackDeadlineNs = NEVER;
    this.#waits(WAIT_RNR);
    if (this.recovery.goesBack) this.#goBack(psn);
    else this.recovery.onLoss(psn, psnAdd(psn, 1), psn, this.out.newPsn, LOSS_TIMEOUT);
    this.#qp.deadlineChanged();
  }

  onDeadline(now: number): void {
    if (now >= this.rnrDeadlineNs) {
      this.rnrDeadlineNs = NEVER;
      this.#armAckTimer(now);
      this.#qp.schedule();
    }
    if (now >= this.ackDeadlineNs) {
      this.ackDeadlineNs = NEVER;
      const { out } = this;
      if (out.unacked === out.newPsn) return;
      const timeoutNs = this.#timeoutNs;
      if (now < this.#ackStartNs + timeoutNs) {
        this.ackDeadlineNs = this.#ackStartNs + timeoutNs; // With more packets in flight the scheme waits longer.
        return;
      }
      this.#qp.host.counters[COUNTER.local_ack_timeout_err]++;
      this.#qp.probe.timedOut(timeoutNs);
      this.lost(out.unacked, out.newPsn, LOSS_TIMEOUT);
    }
  }

  // ---- completions

  /** Completes what is done at the head of the queue, in order. While draining, says when nothing is left. */
  retire(): void {
    const { out } = this;
    while (out.head !== out.started) {
      if (out.head === this.#failedIndex) break;
      const i = out.head & out.mask;
      if (out.kind[i] === KIND_LOCAL) {
        // Executed when it was started; after a rewind the cursor may have yet to pass it.
        if (out.head === out.cursor) out.cursor = (out.head + 1) >>> 0;
      } else if (psnDiff(out.unacked, out.lastPsn[i]) <= 0) break;
      this.#completeHead(STATUS_SUCCESS, 0);
    }
    if (out.head === this.#failedIndex) this.completeInError(this.#failedStatus, 0);
    else if (this.#qp.attributes.state === QPS_SQD && out.isIdle) {
      // Everything that was started has completed, and nothing more is started: this is said once.
      this.#qp.host.raise(EVENT_SQ_DRAINED, this.#qp.qpn);
    }
  }

  /** The oldest work request fails: its real status, everything after it flushed. */
  completeInError(status: number, vendorError: number): void {
    this.#qp.host.counters[COUNTER.req_cqe_error]++;
    this.#completeHead(status, vendorError);
    this.#qp.enterError(false);
  }

  /** Completes everything that is posted with WR_FLUSH_ERR. */
  flush(): void {
    this.ackDeadlineNs = NEVER;
    this.rnrDeadlineNs = NEVER;
    this.#failedIndex = -1;
    const { out } = this;
    const end = this.#sq.producer;
    while (out.head !== end) this.#completeHead(STATUS_WR_FLUSH_ERR, 0);
    this.#waits(WAIT_NOTHING);
    out.reset(out.newPsn, end);
  }

  /** Back to RESET: what is posted disappears without completions. */
  discard(): void {
    this.ackDeadlineNs = NEVER;
    this.rnrDeadlineNs = NEVER;
    this.#failedIndex = -1;
    this.#sq.consumer = this.#sq.producer;
    this.#qp.probe.discarded(this.#sq.producer);
    this.out.reset(0, this.#sq.producer);
  }

  /** The head moves on before the completion is written: a CQ that overruns stops the QP, which flushes from the head. */
  #completeHead(status: number, vendorError: number): void {
    const index = this.out.head;
    this.out.head = (index + 1) >>> 0;
    this.#sq.consumer = this.out.head;
    this.#qp.probe.completed(index);
    const flags = this.#sq.flagsAt(index);
    const wanted = status !== STATUS_SUCCESS || this.#qp.signalAll || (flags & SEND_SIGNALED) !== 0;
    if (wanted) {
      const cqe = this.#cqe;
      const opcode = this.#sq.opcodeAt(index);
      cqe.index = index;
      cqe.qpn = this.#qp.qpn;
      cqe.status = status;
      cqe.opcode = wcOpcodeOf(opcode);
      cqe.byteCount = this.#sq.messageBytesAt(index);
      cqe.vendorError = vendorError;
      this.#qp.sendCq.complete(cqe);
    }
  }
}

/** Opcodes by work request opcode: first, middle, last, only. */
const DATA_OPCODES: ReadonlyArray<readonly [number, number, number, number] | undefined> = (() => {
  const rows: Array<readonly [number, number, number, number] | undefined> = Array(WR_SEND_WITH_INV + 1).fill(
    undefined,
  );
  rows[WR_SEND] = [op.RC_SEND_FIRST, op.RC_SEND_MIDDLE, op.RC_SEND_LAST, op.RC_SEND_ONLY];
  rows[WR_SEND_WITH_IMM] = [op.RC_SEND_FIRST, op.RC_SEND_MIDDLE, op.RC_SEND_LAST_IMM, op.RC_SEND_ONLY_IMM];
  rows[WR_SEND_WITH_INV] = [op.RC_SEND_FIRST, op.RC_SEND_MIDDLE, op.RC_SEND_LAST_INV, op.RC_SEND_ONLY_INV];
  rows[WR_RDMA_WRITE] = [op.RC_WRITE_FIRST, op.RC_WRITE_MIDDLE, op.RC_WRITE_LAST, op.RC_WRITE_ONLY];
  rows[WR_RDMA_WRITE_WITH_IMM] = [op.RC_WRITE_FIRST, op.RC_WRITE_MIDDLE, op.RC_WRITE_LAST_IMM, op.RC_WRITE_ONLY_IMM];
  return rows;
})();

function dataOpcode(wrOpcode: number, isFirst: boolean, isLast: boolean): number {
  const row = DATA_OPCODES[wrOpcode]!;
  return isFirst ? row[isLast ? 3 : 0] : row[isLast ? 2 : 1];
}
