/**
 * A reliable connected queue pair: the state machine around requester, completer and responder.
 */

import { CongestionControl } from '../dcqcn/congestion-control.js';
import { unpackRateControl } from '../dcqcn/schemes.js';
import { OP_ACK, OP_ATOMIC_ACK, OP_READ_RESPONSE, VENDOR_SACK } from '../packet/opcode.js';
import { psnDiff } from '../packet/psn.js';
import { type RocePacket, writeCnp } from '../packet/roce.js';
import { ECN_ECT0, type TxBatch } from '../port/datagram.js';
import { usesSack } from '../retransmit/schemes.js';
import {
  type CommandResult,
  QP_ATTR_AV,
  QP_ATTR_MAX_DEST_RD_ATOMIC,
  QP_ATTR_RATE_CONTROL,
  type QpAttributes,
} from '../ring/commands.js';
import {
  EVENT_COMM_EST,
  EVENT_QP_FATAL,
  EVENT_QP_LAST_WQE_REACHED,
  PATH_MTUS,
  QPS_ERR,
  QPS_INIT,
  QPS_RESET,
  QPS_RTR,
  QPS_RTS,
  QPS_SQD,
  QPT_RC,
} from '../ring/enums.js';
import { TelemetryPage, WAIT_NOTHING } from '../ring/telemetry-page.js';
import type { SendQueue } from '../ring/work-queue.js';
import { Completer } from './completer.js';
import type { CompletionSink, Paced, QpHost, ReceiveSource, Schedulable } from './host.js';
import type { Path, PeerBudget } from './path.js';
import { NO_PROBE, PageProbe, type QpProbe } from './probe.js';
import { type RcShared, windowPackets } from './rc-shared.js';
import { Requester } from './requester.js';
import { Responder } from './responder.js';
import { checkTransition } from './state.js';

/** Congestion notifications travel on a priority of their own: what mlx5 sends them with (cnp_dscp). */
export const CNP_DSCP = 48;

/** What a queue pair of any type is made of. */
export interface QueuePairOptions {
  readonly host: QpHost;
  readonly qpn: number;
  readonly pd: number;
  readonly sendCq: CompletionSink;
  readonly recvCq: CompletionSink;
  readonly receives: ReceiveSource;
  readonly sendQueue: SendQueue;
  readonly signalAll: boolean;
  readonly attributes: QpAttributes;
}

/** The path of an RC queue pair, made by the NIC when the remote side is known. */
export interface Connection {
  readonly path: Path;
  readonly budget: PeerBudget;
}

export class RcQueuePair implements Schedulable, Paced, RcShared {
  readonly type = QPT_RC;
  readonly host: QpHost;
  readonly qpn: number;
  readonly pd: number;
  readonly sendCq: CompletionSink;
  readonly recvCq: CompletionSink;
  readonly receives: ReceiveSource;
  readonly signalAll: boolean;
  readonly attributes: QpAttributes;
  mtuBytes: number = PATH_MTUS[0];
  scheduled = false;
  deadlineNs = Number.POSITIVE_INFINITY;
  probe: QpProbe = NO_PROBE;
  isWaiting = false;
  resumeNs = 0;
  resumeSequence = 0;
  congestion: CongestionControl;
  /** Congestion notifications that have yet to be sent. */
  cnpsOwed = 0;
  dataEcn = 0;
  #connection: Connection | undefined;
  readonly #requester: Requester;
  readonly #completer: Completer;
  readonly #responder: Responder;
  #communicationEstablished = false;
  /** Whose turn it is when both sides have packets to send. */
  #responderFirst = true;

  constructor(options: QueuePairOptions) {
    this.host = options.host;
    this.qpn = options.qpn;
    this.pd = options.pd;
    this.sendCq = options.sendCq;
    this.recvCq = options.recvCq;
    this.receives = options.receives;
    this.signalAll = options.signalAll;
    this.attributes = options.attributes;
    this.congestion = this.#newCongestionControl();
    this.#requester = new Requester(this, options.sendQueue);
    this.#completer = new Completer(this, options.sendQueue, this.#requester);
    this.#responder = new Responder(this);
  }

  get path(): Path {
    return this.#connection!.path;
  }

  get budget(): PeerBudget {
    return this.#connection!.budget;
  }

  get connection(): Connection | undefined {
    return this.#connection;
  }

  schedule(): void {
    this.host.schedule(this);
  }

  deadlineChanged(): void {
    this.deadlineNs = this.#requester.deadlineNs;
    this.host.armDeadline(this);
  }

  /**
   * Applies attributes and moves the state. `connect` is asked for the path when the QP goes to RTR, or gets another address vector
   * while it drains. Throws like {@link checkTransition} and then has changed nothing.
   */
  modify(mask: number, values: QpAttributes, apply: () => void, connect: () => Connection): void {
    const from = this.attributes.state;
    const to = values.state;
    checkTransition(QPT_RC, from, to, mask);
    if (to === QPS_RTR && from === QPS_INIT) {
      // Everything that may refuse comes before the first change.
      const connection = connect();
      apply();
      this.#connection = connection;
      this.mtuBytes = PATH_MTUS[values.pathMtu - 1];
      this.#responder.start();
    } else {
      const connection = (mask & QP_ATTR_AV) !== 0 ? connect() : this.#connection;
      apply();
      this.#connection = connection;
      if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) !== 0) this.#responder.resize();
    }
    if ((mask & QP_ATTR_RATE_CONTROL) !== 0) this.#control();
    this.dataEcn = this.#dataCodepoint();
    if (to === QPS_RTS && from === QPS_RTR) this.#requester.start();
    if (to === QPS_ERR) this.#stop(false);
    else this.attributes.state = to;
    if (to === QPS_SQD && from === QPS_RTS) this.#requester.retire();
    else if (to === QPS_RESET) this.#reset();
    this.schedule();
  }

  #newCongestionControl(): CongestionControl {
    const { rateControl, rateParameters } = this.attributes;
    return new CongestionControl(unpackRateControl(rateControl, rateParameters), this.host.pacingCatchUpNs);
  }

  /** Starts the rate control that the attributes name: what was learned so far is forgotten. */
  #control(): void {
    this.congestion = this.#newCongestionControl();
    this.#requester.obey(this.congestion.rate);
    this.host.cancelResume(this);
  }

  /** What the address vector says; if that is nothing, whether the rate control listens to marks. */
  #dataCodepoint(): number {
    const own = this.#connection?.path.ecn ?? 0;
    return own === 0 && this.congestion.rate.usesEcn ? ECN_ECT0 : own;
  }

  #reset(): void {
    this.#control();
    this.cnpsOwed = 0;
    this.#connection = undefined;
    this.#communicationEstablished = false;
    this.#requester.discard();
    this.#completer.reset();
    this.#responder.discard();
    this.host.keys.unbindAllOf(this.qpn);
    this.deadlineNs = Number.POSITIVE_INFINITY;
  }

  enterError(lastWords: boolean): void {
    if (this.attributes.state !== QPS_ERR) this.host.raise(EVENT_QP_FATAL, this.qpn);
    this.#stop(lastWords);
  }

  /** To ERR, by an error or by the owner's wish. */
  #stop(lastWords: boolean): void {
    const wasRunning = this.attributes.state !== QPS_ERR;
    this.attributes.state = QPS_ERR;
    if (!lastWords) this.#responder.silence();
    this.#requester.flush();
    this.#responder.flush();
    this.deadlineNs = Number.POSITIVE_INFINITY;
    if (wasRunning && this.receives.shared) this.host.raise(EVENT_QP_LAST_WQE_REACHED, this.qpn);
    this.schedule();
  }

  /** New elements were posted. */
  doorbell(): void {
    if (this.attributes.state === QPS_ERR) {
      this.#requester.flush();
      this.#responder.flush();
    } else this.schedule();
  }

  /** True when the packet's transport class is this QP's, or it notifies of congestion; the SACK extension only where the recovery scheme uses it. */
  speaks(packet: RocePacket): boolean {
    const { transport } = packet.info;
    if (transport === 'RC' || transport === 'CNP') return true;
    return packet.opcode === VENDOR_SACK && usesSack(this.attributes.recovery);
  }

  /** True when a packet of this kind is processed in the current state (IBTA §10.3.1). */
  accepts(packet: RocePacket): boolean {
    const { state } = this.attributes;
    if (state === QPS_RTS || state === QPS_SQD) return true;
    return state === QPS_RTR && !isResponse(packet);
  }

  receive(packet: RocePacket, bytes: Uint8Array, offset: number, length: number, now: number): void {
    const { probe } = this;
    probe.nowNs = now;
    if (isResponse(packet)) {
      probe.packetReceived(packet, length, 0);
      this.#completer.receive(packet, bytes, now);
      return;
    }
    if (!this.#communicationEstablished) {
      this.#communicationEstablished = true;
      if (this.attributes.state === QPS_RTR) this.host.raise(EVENT_COMM_EST, this.qpn);
    }
    probe.packetReceived(packet, length, psnDiff(packet.psn, this.#responder.expectedPsn));
    this.#responder.receive(packet, bytes, offset, length);
  }

  /** Sends at most one packet; false when there is nothing to send now. */
  emit(batch: TxBatch, now: number): boolean {
    if (this.#connection === undefined) return false;
    this.probe.nowNs = now;
    if (!this.#emitInTurn(batch, now)) return false;
    this.probe.packetSent(batch);
    return true;
  }

  #emitInTurn(batch: TxBatch, now: number): boolean {
    const { state } = this.attributes;
    const mayRequest = state === QPS_RTS || state === QPS_SQD;
    this.#responderFirst = !this.#responderFirst;
    if (this.#responderFirst && this.#responder.emit(batch, now)) return true;
    if (mayRequest && this.#requester.emit(batch, now)) return true;
    if (!this.#responderFirst && this.#responder.emit(batch, now)) return true;
    const { pacer } = this.congestion;
    if (pacer.opensNs > now) this.host.resumeAt(this, pacer.opensNs);
    else if (!this.#requester.hasUnsent && !this.#responder.hasWork) pacer.rest();
    return false;
  }

  dataSent(batch: TxBatch, now: number): void {
    this.probe.waits(WAIT_NOTHING);
    this.congestion.pacer.onSent(batch.lengths[batch.count - 1] + this.path.overheadBytes, now);
  }

  /** Sends one congestion notification (annex A17.9.3) to the peer; false when there is no peer to send it to. */
  emitCnp(batch: TxBatch, now: number): boolean {
    if (this.#connection === undefined || this.attributes.state === QPS_ERR) return false;
    const { path } = this.#connection;
    const end = writeCnp(batch.slab, batch.payloadOffset(batch.count), this.attributes.destQpn);
    path.seal(batch, end, this.host.nextIpId(), 0, CNP_DSCP);
    this.probe.nowNs = now;
    this.probe.packetSent(batch);
    return true;
  }

  /** The peer notifies of congestion. False when that changes nothing. */
  receiveCnp(packet: RocePacket, length: number, now: number): boolean {
    this.probe.nowNs = now;
    this.probe.packetReceived(packet, length, 0);
    return this.congestion.onCnp(now);
  }

  onDeadline(now: number): void {
    this.probe.nowNs = now;
    this.#requester.onDeadline(now);
    this.deadlineNs = this.#requester.deadlineNs;
    if (this.deadlineNs !== Number.POSITIVE_INFINITY) this.host.armDeadline(this);
  }

  /** The QP is destroyed: windows it bound are gone, nothing is completed. */
  destroy(): void {
    this.#reset();
    this.attributes.state = QPS_RESET;
  }

  /** From now on telemetry goes to the page in this memory. Throws ERR_ROCE_OUT_OF_RANGE when it is too small. */
  watch(memory: ArrayBufferLike): void {
    const { out } = this.#requester;
    this.probe = new PageProbe(new TelemetryPage(memory, out.mask + 1), out.head);
  }

  /** For inspectQp: how far both sides are. */
  get progress(): CommandResult<'inspectQp'> {
    const { out, recovery, retriesLeft, rnrRetriesLeft, rnrDeadlineNs } = this.#requester;
    return {
      unackedPsn: out.unacked,
      sendPsn: out.sendPsn,
      newPsn: out.newPsn,
      expectedPsn: this.#responder.expectedPsn,
      msn: this.#responder.msn,
      windowPackets: this.#connection === undefined ? 0 : Math.min(windowPackets(this.budget), recovery.inFlightMax),
      postedWqes: this.#requester.postedWqes,
      startedWqes: (out.started - out.head) >>> 0,
      outstandingReads: out.reads.count,
      retriesLeft,
      rnrRetriesLeft,
      waitsForReceiver: rnrDeadlineNs === Number.POSITIVE_INFINITY ? 0 : 1,
    };
  }

  /** For queryQp: the PSNs as they are now. */
  get nextPsns(): { sqPsn: number; rqPsn: number } {
    return { sqPsn: this.#requester.out.newPsn, rqPsn: this.#responder.expectedPsn };
  }
}

function isResponse(packet: RocePacket): boolean {
  const { kind } = packet.info;
  return kind === OP_ACK || kind === OP_READ_RESPONSE || kind === OP_ATOMIC_ACK;
}
