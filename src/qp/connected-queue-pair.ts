/**
 * What reliable and unreliable connections have in common: a path to one peer, the checks of what comes from it, pacing by a rate control, and
 * notifications of congestion in both directions (IBTA vol. 1 §9.6, annex A17.9).
 */

import { CongestionControl } from '../dcqcn/congestion-control.js';
import { NotificationLimit } from '../dcqcn/notification-limit.js';
import type { RateControl } from '../dcqcn/rate-control.js';
import { unpackRateControl } from '../dcqcn/schemes.js';
import {
  QP_ATTR_AV,
  QP_ATTR_RATE_CONTROL,
  QP_ATTR_REMOTE_SOURCE_PORT,
  type QpAttributes,
} from '../memory/ring/commands.js';
import { COUNTER } from '../memory/ring/counters.js';
import {
  EVENT_CNP_SUSPICIOUS,
  EVENT_COMM_EST,
  EVENT_QP_FATAL,
  EVENT_QP_LAST_WQE_REACHED,
  EVENT_QP_SOURCE_PORT,
  EVENT_SQ_DRAINED,
  QPS_ERR,
  QPS_INIT,
  QPS_RESET,
  QPS_RTR,
  QPS_RTS,
  QPS_SQD,
} from '../memory/ring/enums.js';
import { TelemetryPage, WAIT_NOTHING } from '../memory/ring/telemetry-page.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import type { IcrcFlow } from '../packet/icrc.js';
import { INT_NONE } from '../packet/int-trailer.js';
import { CNP } from '../packet/opcode.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import { type RocePacket, writeCnp } from '../packet/roce.js';
import { ECN_CE, ECN_ECT0, type RxDatagram, type TxBatch } from '../port/datagram.js';
import { applyAttributes, asksForDrained, checkRanges, initialAttributes } from './attributes.js';
import type { CompletionSink, NotificationSender, Paced, QpHost, ReceiveSource } from './host.js';
import type { NextPsns, NicQueuePair, QpProgress, QueuePairOptions } from './nic-queue-pair.js';
import { CNP_DSCP, type ConnectedPeer, type Path } from './path.js';
import type { PeerBudget } from './peer-budget.js';
import { ANY_PEER_PORT, PeerPort } from './peer-port.js';
import { NO_PROBE, PageProbe, type QpProbe } from './probe.js';
import type { QpShared } from './shared.js';
import { checkTransition, checkWhileDraining, type TransitionTable } from './state.js';

/** A queue pair that is connected to one other. */
export abstract class ConnectedQueuePair implements NicQueuePair, NotificationSender, Paced, QpShared {
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
  cnpsPending = 0;
  dataEcn = 0;
  dataIntKind: number = INT_NONE;
  /** Ways of the connection, as the recovery scheme of both ends has them. */
  #ways = 1;
  protected readonly sendQueue: SendQueue;
  #connection: ConnectedPeer | undefined;
  #peerPort = ANY_PEER_PORT;
  #communicationEstablished = false;
  readonly #notificationLimit = new NotificationLimit();
  /** In SQD: the owner has yet to be told that the send queue has drained. */
  #tellsDrained = false;
  /** Events of {@link warn} that this connection has raised. */
  readonly #warned = new Set<number>();

  constructor(options: QueuePairOptions) {
    this.host = options.host;
    this.qpn = options.qpn;
    this.pd = options.pd;
    this.sendCq = options.sendCq;
    this.recvCq = options.recvCq;
    this.receives = options.receives;
    this.sendQueue = options.sendQueue;
    this.signalAll = options.signalAll;
    this.attributes = options.attributes;
    this.congestion = this.#newCongestionControl();
  }

  // ---- what the transports differ in

  /** Transitions of the state and the attributes that each takes. */
  protected abstract readonly transitions: TransitionTable;
  /** UDP source ports that each end uses, by the attributes. */
  protected abstract readonly waysWanted: number;
  /** INIT to RTR: from here on packets are received. */
  protected abstract startReceiving(): void;
  /** RTR to RTS: from here on work requests are sent. */
  protected abstract startSending(): void;
  /** RTS to SQD: what was begun is finished, nothing more is begun. */
  protected abstract drain(): void;
  /** Some of what was begun is not finished. */
  protected abstract readonly hasBegun: boolean;
  /** Both queues are flushed. */
  protected abstract flush(): void;
  /** Answers that are pending are not sent any more. */
  protected abstract silence(): void;
  /** Back to RESET: what is posted disappears without completions. */
  protected abstract discard(): void;
  /** Attributes that may change while the queue pair is connected have changed, as `mask` says. */
  protected abstract attributesChanged(mask: number): void;
  /** Another rate control is in force: round trips are measured as it wants, and its window counts. */
  protected abstract applyRateControl(rate: RateControl): void;
  /** Takes a packet of the transport; it may be marked. */
  protected abstract receivePacket(packet: RocePacket, datagram: RxDatagram, now: number): void;
  /** Sends at most one packet. */
  protected abstract emitPacket(batch: TxBatch, now: number): boolean;
  abstract carries(packet: RocePacket): boolean;
  abstract accepts(packet: RocePacket): boolean;
  abstract doorbell(): void;
  abstract onDeadline(now: number): void;
  abstract readonly nextPsns: NextPsns;
  abstract readonly progress: QpProgress;

  // ---- what the parts share

  get path(): Path {
    return this.#connection!.path;
  }

  get budget(): PeerBudget {
    return this.#connection!.budget;
  }

  get peerPort(): PeerPort {
    return this.#peerPort;
  }

  protected get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  schedule(): void {
    this.host.schedule(this);
  }

  warn(event: number): void {
    if (this.#warned.has(event)) return;
    this.#warned.add(event);
    this.host.raise(event, this.qpn);
  }

  /** A queue pair without timers has nothing to say here. */
  deadlineChanged(): void {}

  dataSent(batch: TxBatch, now: number): void {
    this.probe.waits(WAIT_NOTHING);
    if (this.dataEcn !== 0) this.#notificationLimit.onEctSent(now);
    this.congestion.pacer.onSent(batch.lengths[batch.count - 1] + this.path.overheadBytes, now);
  }

  // ---- the receive path

  matchesAddresses({ source, destination }: RxDatagram): boolean {
    const { path } = this;
    return path.remote.equals(source) && path.local.equals(destination);
  }

  matchesSourcePort({ opcode }: RocePacket, { sourcePort }: RxDatagram): boolean {
    if (this.#peerPort.accepts(sourcePort, opcode)) return true;
    this.warn(EVENT_QP_SOURCE_PORT);
    return false;
  }

  matchesQkey(): boolean {
    return true;
  }

  receiveFlow({ sourcePort }: RxDatagram): IcrcFlow {
    return this.path.receiveFlow(sourcePort);
  }

  receive(packet: RocePacket, datagram: RxDatagram, now: number): void {
    this.probe.nowNs = now;
    if (packet.opcode === CNP) {
      this.probe.packetReceived(packet, datagram.length, 0);
      this.#receiveCnp(now);
      return;
    }
    // A packet with a trailer is answered by an echo, which tells of each mark.
    if (datagram.ecn === ECN_CE && packet.trailerBytes === 0) this.#onMarked(now);
    this.receivePacket(packet, datagram, now);
  }

  #onMarked(now: number): void {
    const { notification } = this.congestion;
    if (notification.onMarked(now)) this.host.notifyCongestion(this);
    else if (notification.dueNs < this.deadlineNs) {
      this.deadlineNs = notification.dueNs;
      this.host.armDeadline(this);
    }
  }

  /** Sends the notification of a tick that has come. */
  protected notifyIfDue(now: number): void {
    if (this.congestion.notification.onTick(now)) this.host.notifyCongestion(this);
  }

  /** The peer, or whoever forges its packets, notifies of congestion. */
  #receiveCnp(now: number): void {
    const { counters } = this.host;
    const limit = this.#notificationLimit;
    if (this.dataEcn === 0) counters[COUNTER.rp_cnp_ignored]++;
    else if (!limit.admits(now)) {
      counters[COUNTER.rp_cnp_suspicious]++;
      if (limit.onSuspicious(now)) this.host.raise(EVENT_CNP_SUSPICIOUS, this.qpn);
    } else if (this.congestion.onCnp(now)) {
      limit.onCut(now);
      counters[COUNTER.rp_cnp_handled]++;
    } else counters[COUNTER.rp_cnp_ignored]++;
  }

  /** The first request of the peer says that it is ready to send. */
  protected establishCommunication(): void {
    if (this.#communicationEstablished) return;
    this.#communicationEstablished = true;
    if (this.attributes.state === QPS_RTR) this.host.raise(EVENT_COMM_EST, this.qpn);
  }

  // ---- sending

  get nextDscp(): number {
    return this.#connection?.path.dscp ?? 0;
  }

  emit(batch: TxBatch, now: number): boolean {
    if (this.#connection === undefined) return false;
    this.probe.nowNs = now;
    if (!this.emitPacket(batch, now)) return false;
    this.probe.packetSent(batch);
    return true;
  }

  /** Nothing can be sent now: comes back when the pacer opens. `hasUnsent`: there is something to send. */
  protected yieldTurn(hasUnsent: boolean, now: number): false {
    const { pacer } = this.congestion;
    if (pacer.opensNs > now) this.host.resumeAt(this, pacer.opensNs);
    else if (!hasUnsent) pacer.idle();
    return false;
  }

  emitCnp(batch: TxBatch, now: number): boolean {
    if (this.#connection === undefined || this.attributes.state === QPS_ERR) return false;
    const { path } = this.#connection;
    const end = writeCnp(batch.slab, batch.payloadOffset(batch.count), this.attributes.destQpn);
    path.seal(batch, end, this.host.nextIpId(), 0, CNP_DSCP);
    this.probe.nowNs = now;
    this.probe.packetSent(batch);
    return true;
  }

  // ---- commands

  modify(mask: number, values: QpAttributes): void {
    // Everything that may refuse comes before the first change.
    checkRanges(values, mask, this.host.pathMtuMax);
    const from = this.attributes.state;
    const to = values.state;
    checkTransition(this.transitions, from, to, mask);
    if (this.isDraining) checkWhileDraining(this.transitions, mask);
    const before = this.#connection;
    const connects = to === QPS_RTR && from === QPS_INIT;
    const connection = connects || (mask & QP_ATTR_AV) !== 0 ? this.#connect(values, mask) : before;
    applyAttributes(this.attributes, values, mask);
    this.#connection = connection;
    if (connects) this.#ways = this.waysWanted;
    if (connection !== before) connection?.path.spread(this.#ways);
    if (connection !== before || (mask & QP_ATTR_REMOTE_SOURCE_PORT) !== 0) this.#expectPeer();
    if (connects) {
      this.mtuBytes = PATH_MTUS[values.pathMtu - 1];
      this.startReceiving();
    } else this.attributesChanged(mask);
    if ((mask & QP_ATTR_RATE_CONTROL) !== 0) this.#startRateControl();
    this.dataEcn = this.#dataCodepoint();
    if (to === QPS_RTS && from === QPS_RTR) this.startSending();
    // In ERR already: the NAK that an error owes still leaves.
    if (to === QPS_ERR) this.#stop(from === QPS_ERR);
    else this.attributes.state = to;
    if (from !== QPS_SQD || to !== QPS_SQD) this.#tellsDrained = to === QPS_SQD && asksForDrained(values, mask);
    if (to === QPS_SQD && from === QPS_RTS) this.drain();
    else if (to === QPS_RESET) this.#reset();
    if (before !== undefined && before !== this.#connection) this.host.disconnect(before);
    this.schedule();
  }

  get isDraining(): boolean {
    return this.attributes.state === QPS_SQD && this.hasBegun;
  }

  sendQueueDrained(): void {
    if (!this.#tellsDrained) return;
    this.#tellsDrained = false;
    this.host.raise(EVENT_SQ_DRAINED, this.qpn);
  }

  #connect(values: QpAttributes, mask: number): ConnectedPeer {
    const attributes = { ...this.attributes };
    applyAttributes(attributes, values, mask);
    return this.host.connect(this.qpn, attributes);
  }

  /** What is known of the peer's packets, and has been told of strangers', begins anew. */
  #expectPeer(): void {
    const { remoteSourcePort, destQpn } = this.attributes;
    this.#peerPort = new PeerPort(remoteSourcePort, this.qpn, destQpn, this.#ways);
    this.#warned.clear();
  }

  #newCongestionControl(): CongestionControl {
    const { rateControl, rateParameters } = this.attributes;
    return new CongestionControl(unpackRateControl(rateControl, rateParameters), this.host.pacingCatchUpNs);
  }

  /** Starts the rate control that the attributes name: what was learned so far is forgotten. */
  #startRateControl(): void {
    this.congestion = this.#newCongestionControl();
    this.applyRateControl(this.congestion.rate);
    this.host.cancelResume(this);
  }

  /** What the address vector says; if that is nothing, whether the rate control listens to marks. */
  #dataCodepoint(): number {
    const own = this.#connection?.path.ecn ?? 0;
    return own === 0 && this.congestion.rate.usesEcn ? ECN_ECT0 : own;
  }

  /** Nothing of the connection is left: every attribute has its initial value (IBTA §10.3.1.1). */
  #reset(): void {
    Object.assign(this.attributes, initialAttributes());
    this.mtuBytes = PATH_MTUS[0];
    this.#startRateControl();
    this.cnpsPending = 0;
    this.#connection = undefined;
    this.#peerPort = ANY_PEER_PORT;
    this.#warned.clear();
    this.#communicationEstablished = false;
    this.dataEcn = 0;
    this.#notificationLimit.reset();
    this.discard();
    this.host.keys.unbindAllOf(this.qpn);
    this.deadlineNs = Number.POSITIVE_INFINITY;
  }

  enterError(finalNak = false): void {
    if (this.attributes.state !== QPS_ERR) this.host.raise(EVENT_QP_FATAL, this.qpn);
    this.#stop(finalNak);
  }

  /** To ERR, by an error or by the owner's wish. */
  #stop(finalNak: boolean): void {
    const wasRunning = this.attributes.state !== QPS_ERR;
    this.attributes.state = QPS_ERR;
    if (!finalNak) this.silence();
    this.flush();
    if (this.#connection !== undefined) this.host.disconnect(this.#connection); // Others may use its share.
    this.deadlineNs = Number.POSITIVE_INFINITY;
    if (wasRunning && this.receives.shared) this.host.raise(EVENT_QP_LAST_WQE_REACHED, this.qpn);
    this.schedule();
  }

  destroy(): void {
    if (this.#connection !== undefined) this.host.disconnect(this.#connection);
    this.#reset();
  }

  get sourcePort(): number {
    return this.#connection?.path.sourcePort ?? 0;
  }

  get remoteSourcePort(): number {
    return this.#peerPort.port;
  }

  get rate(): RateControl {
    return this.congestion.rate;
  }

  watch(memory: ArrayBufferLike): void {
    const { depth, consumer } = this.sendQueue;
    this.probe = new PageProbe(new TelemetryPage(memory, depth), consumer);
  }
}
