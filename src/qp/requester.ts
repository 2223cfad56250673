/**
 * The requester: sends work requests in order and decides which packet is the next (IBTA vol. 1 §9.7.2). Owns the
 * cursor and the send PSNs. The completer evaluates responses; the retransmitter decides on retransmissions.
 */

import { UNPACED } from '../dcqcn/pacer.js';
import type { RateControl } from '../dcqcn/rate-control.js';
import { WAIT_NOTHING, WAIT_PACING, WAIT_READ_LIMIT, WAIT_WINDOW } from '../memory/ring/telemetry-page.js';
import { INT_DATA_CREDIT } from '../packet/int-trailer.js';
import { psnAdd, psnDiff, psnOffset } from '../packet/psn.js';
import type { TxBatch } from '../port/datagram.js';
import { KIND_DATA, KIND_LOCAL } from './outstanding.js';
import { ReadRequester } from './read-requester.js';
import { RequestStarter } from './request-starter.js';
import { RC_DATA_OPCODES, Segmenter } from './segmenter.js';
import type { SendSide } from './send-side.js';
import { SendWindow } from './send-window.js';
import type { QueuePairParts } from './transport.js';

export class Requester {
  readonly #parts: QueuePairParts;
  readonly #side: SendSide;
  readonly #segmenter: Segmenter;
  readonly #starter: RequestStarter;
  readonly #reads: ReadRequester;
  readonly #window: SendWindow;

  constructor(parts: QueuePairParts, side: SendSide) {
    this.#parts = parts;
    this.#side = side;
    this.#segmenter = new Segmenter(parts, RC_DATA_OPCODES);
    this.#starter = new RequestStarter(parts, side, this.#segmenter);
    this.#reads = new ReadRequester(parts, side, this.#segmenter);
    this.#window = new SendWindow(parts, side);
  }

  start(): void {
    const { ackRequests, completion, retransmitter } = this.#side;
    completion.start();
    retransmitter.start();
    this.#segmenter.reset();
    ackRequests.reset();
    ackRequests.repairsSinglePackets = !retransmitter.recovery.goesBack;
  }

  flush(): void {
    this.#side.retransmitter.stopTimers();
    this.#side.completion.flush();
    this.#waits(WAIT_NOTHING);
  }

  discard(): void {
    this.#side.retransmitter.stopTimers();
    this.#side.completion.discard();
  }

  /** Posted work has not been sent completely, or is to be retransmitted. */
  get hasUnsent(): boolean {
    return this.#side.sendQueue.isPublished(this.#side.out.cursor);
  }

  /** The rate control has changed, and with it the telemetry that data packets request, the window and the pacing. */
  applyRateControl(rate: RateControl): void {
    this.#window.applyRateControl(rate);
    const { ackRequests } = this.#side;
    ackRequests.limitsBytes = rate.usesWindow;
    ackRequests.isPaced = this.#parts.congestion.control.pacer !== UNPACED;
  }

  get windowPacketsMax(): number {
    return this.#window.packetsMax;
  }

  settle(): void {
    this.#window.settle();
  }

  /** Sends at most one packet into the batch; false when there is nothing to send now. */
  emit(batch: TxBatch, now: number): boolean {
    const window = this.#window;
    if (!window.isArbitrating) return this.#emitNext(batch, now);
    const hasSent = this.#emitNext(batch, now);
    if (!hasSent) window.endBurst();
    window.settle();
    return hasSent;
  }

  #emitNext(batch: TxBatch, now: number): boolean {
    const { out, completion, retransmitter } = this.#side;
    if (retransmitter.waitsForReceiver) return false;
    if (this.#parts.congestion.control.pacer.opensNs > now) return this.hasUnsent && this.#waits(WAIT_PACING);
    const resend = retransmitter.recovery.nextResend(out.unacked, out.sendPsn);
    if (resend >= 0) {
      const index = out.find(resend, out.head);
      if (index >= 0 && this.#emitPacket(index, resend, batch, now) > 0) return true;
    }
    for (;;) {
      if (completion.hasFailed(out.cursor)) return false;
      if (out.cursor === out.started && !this.#starter.startNext()) return false;
      const index = out.cursor;
      if (out.kindOf(index) === KIND_LOCAL) {
        out.passCursor();
        completion.completeDone();
        continue;
      }
      const psns = this.#emitPacket(index, out.sendPsn, batch, now);
      if (psns === 0) return false;
      out.sent(psns);
      return true;
    }
  }

  #waits(cause: number): false {
    this.#parts.probe.current.waits(cause);
    return false;
  }

  /** Returns the number of its PSNs (a READ request: of its responses), or 0 when it has to wait. */
  #emitPacket(index: number, psn: number, batch: TxBatch, now: number): number {
    if (!this.#starter.load(index)) return 0;
    const { out } = this.#side;
    const used = psnDiff(psn, out.unacked);
    const window = this.#window.open(used, now);
    const isData = out.kindOf(index) === KIND_DATA;
    let psns = 0;
    let requestsAck = true;
    if (!isData) psns = this.#reads.emit(index, psn, batch, used, window);
    else if (used < window) {
      psns = 1;
      requestsAck = this.#emitData(index, psn, batch, used, window, now);
    }
    if (psns === 0) {
      this.#waits(isData || this.#reads.waitsForWindow(index, used >= window) ? WAIT_WINDOW : WAIT_READ_LIMIT);
      this.#side.retransmitter.blocked(now);
      return 0;
    }
    this.#onSent(index, psn, psns, requestsAck, batch, now);
    return psns;
  }

  #onSent(index: number, psn: number, psns: number, requestsAck: boolean, batch: TxBatch, now: number): void {
    const { out, retransmitter } = this.#side;
    this.#window.sent(psns);
    this.#parts.congestion.dataSent(batch, now);
    if (psn === out.newPsn) {
      const i = index & out.mask;
      const isLast = psnAdd(psn, psns - 1) === out.lastPsn[i];
      this.#parts.probe.current.sent(index, psn === out.firstPsn[i], isLast);
    }
    retransmitter.onSent(psn, psns, now);
    if (requestsAck) retransmitter.onAckReqSent(psnAdd(psn, psns - 1), now);
  }

  /** Returns whether the packet requests an acknowledgement. */
  #emitData(index: number, psn: number, batch: TxBatch, used: number, window: number, now: number): boolean {
    const { out, retransmitter, ackRequests } = this.#side;
    const { link, congestion } = this.#parts;
    const { rtt, recovery } = retransmitter;
    const segmenter = this.#segmenter;
    const i = index & out.mask;
    const isNew = psn === out.newPsn;
    const isLast = psn === out.lastPsn[i];
    const place = psnOffset(psn, out.firstPsn[i]);
    const bytes = segmenter.payloadBytes(place, isLast);
    ackRequests.onWindow(used, window, this.#window.isArbitrated);
    const requestsAck = ackRequests.decide(isLast, !isNew, rtt.isDue(bytes));
    if (isNew) rtt.onSent(psn, bytes, requestsAck, now);
    if (link.path.isSpread) link.path.choose(recovery.nextEntropy(now));
    if (congestion.dataIntKind === INT_DATA_CREDIT) segmenter.wanted = this.#wantedAfter(psn);
    segmenter.trustsProgram = isNew;
    segmenter.write(batch, place, isLast, requestsAck, psn, now);
    return requestsAck;
  }

  /**
   * Packets to be sent after `psn`: the rest of started work, and one window for work whose size is not known yet.
   */
  #wantedAfter(psn: number): number {
    const { out, retransmitter, sendQueue } = this.#side;
    const last = out.lastPsn[(out.started - 1) & out.mask];
    const started = Math.max(0, psnDiff(last, psn) - retransmitter.recovery.arrived);
    return sendQueue.isPublished(out.started) ? started + this.windowPacketsMax : started;
  }
}
