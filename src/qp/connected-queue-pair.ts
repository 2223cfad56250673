/** Common parts of reliable and unreliable connections (IBTA vol. 1 §9.6, annex A17.9). */

import type { RateControl } from '../dcqcn/rate-control.js';
import {
  QP_ATTR_AV,
  QP_ATTR_RATE_CONTROL,
  QP_ATTR_REMOTE_SOURCE_PORT,
  type QpAttributes,
} from '../memory/ring/commands.js';
import {
  EVENT_QP_SETTLED,
  QPS_ERR,
  QPS_INIT,
  QPS_RESET,
  QPS_RTR,
  QPS_RTS,
  QPS_SQD,
  QPS_SQE,
} from '../memory/ring/enums.js';
import { CNP } from '../packet/opcode.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import type { RocePacket } from '../packet/roce.js';
import { ECN_CE, type RxDatagram, type TxBatch } from '../port/datagram.js';
import { applyAttributes, asksForDrained, checkRanges, initialAttributes } from './attributes.js';
import { CongestionNotifier } from './congestion-notifier.js';
import { CongestionState } from './congestion-state.js';
import { Lifecycle } from './lifecycle.js';
import type { NextPsns, NicQueuePair, QpProgress, QueuePairOptions } from './nic-queue-pair.js';
import { PeerLink } from './peer-link.js';
import { ProbeSlot } from './qp-probe.js';
import { Scheduling } from './scheduling.js';
import { checkTransition, checkWhileDraining } from './state.js';
import type { QueuePairParts, QueuePairTransport } from './transport.js';

export class ConnectedQueuePair implements NicQueuePair {
  readonly qpn: number;
  readonly attributes: QpAttributes;
  readonly peer: PeerLink;
  scheduled = false;
  deadlineNs = Number.POSITIVE_INFINITY;
  readonly #parts: QueuePairParts;
  readonly #notifier: CongestionNotifier;
  readonly #transport: QueuePairTransport;
  /** EVENT_QP_SETTLED is to be raised. */
  #isSettling = false;

  constructor(options: QueuePairOptions, connect: (parts: QueuePairParts) => QueuePairTransport) {
    const probe = new ProbeSlot();
    const link = new PeerLink(options);
    const scheduling = new Scheduling(options.host, this);
    const congestion = new CongestionState(options, link, probe);
    const lifecycle = new Lifecycle(options, link, scheduling);
    this.qpn = options.qpn;
    this.attributes = options.attributes;
    this.peer = link;
    this.#parts = { ...options, link, congestion, scheduling, lifecycle, probe };
    this.#notifier = new CongestionNotifier(this.#parts);
    this.#transport = connect(this.#parts);
    lifecycle.attach(this.#transport);
  }

  carries(packet: RocePacket): boolean {
    return packet.info.transport === 'CNP' || this.#transport.carries(packet);
  }

  accepts(packet: RocePacket): boolean {
    return this.#transport.accepts(packet);
  }

  matchesQkey(): boolean {
    return true;
  }

  receive(packet: RocePacket, datagram: RxDatagram, now: number): void {
    const probe = this.#parts.probe.current;
    probe.nowNs = now;
    if (packet.opcode === CNP) {
      probe.packetReceived(packet, datagram.length, 0);
      this.#parts.congestion.onCnp(now);
      return;
    }
    // A packet with a trailer is answered by an echo, which reports each mark.
    if (datagram.ecn === ECN_CE && packet.trailerBytes === 0) this.#notifier.onMarked(now);
    this.#transport.receive(packet, datagram, now);
  }

  doorbell(): void {
    const { state } = this.attributes;
    if (state === QPS_ERR || state === QPS_SQE) this.#transport.flushSends();
    if (state === QPS_ERR) this.#transport.flushReceives();
    else if (state !== QPS_SQE) this.#parts.scheduling.schedule();
  }

  get nextDscp(): number {
    return this.peer.connection?.path.dscp ?? 0;
  }

  emit(batch: TxBatch, now: number): boolean {
    if (!this.peer.isConnected) return false;
    const probe = this.#parts.probe.current;
    probe.nowNs = now;
    const isSent = this.#transport.emit(batch, now);
    if (this.#isSettling) this.#noteSettled();
    if (isSent) {
      probe.packetSent(batch);
      return true;
    }
    const { pacer } = this.#parts.congestion.control;
    if (pacer.opensNs > now) this.#parts.scheduling.resumeAt(pacer.opensNs);
    else if (!this.#transport.hasUnsent) pacer.idle();
    return false;
  }

  onDeadline(now: number): void {
    this.#parts.probe.current.nowNs = now;
    this.#notifier.onDeadline(now);
    this.#transport.onDeadline(now);
    this.#parts.scheduling.deadlineNs = Math.min(
      this.#transport.deadlineNs,
      this.#parts.congestion.control.notification.dueNs,
    );
  }

  /** Nothing is posted, in flight or owed to the peer, and nothing waits for its turn. */
  get isIdle(): boolean {
    const { unackedPsn, newPsn, postedWqes } = this.progress;
    const waits = this.scheduled || this.#parts.scheduling.isWaiting || !this.#notifier.isIdle;
    return !waits && unackedPsn === newPsn && postedWqes === 0;
  }

  modify(mask: number, values: QpAttributes): void {
    const { host } = this.#parts;
    const { attributes, peer } = this;
    const transport = this.#transport;
    // All calls that may throw precede the first change.
    checkRanges(values, mask, host.pathMtuMax);
    const from = attributes.state;
    const to = values.state;
    checkTransition(transport.transitions, from, to, mask);
    if (this.isDraining) checkWhileDraining(transport.transitions, mask);
    const before = peer.connection;
    const connects = to === QPS_RTR && from === QPS_INIT;
    const connection = connects || (mask & QP_ATTR_AV) !== 0 ? peer.open(values, mask) : undefined;
    applyAttributes(attributes, values, mask);
    if (connection !== undefined) peer.use(connection, connects ? transport.entropies : undefined);
    if (connection !== undefined || (mask & QP_ATTR_REMOTE_SOURCE_PORT) !== 0) peer.expectPeer();
    if (connects) {
      peer.mtuBytes = PATH_MTUS[values.pathMtu - 1];
      transport.startReceiving();
    } else transport.attributesChanged(mask);
    if ((mask & QP_ATTR_RATE_CONTROL) !== 0) this.#startRateControl();
    this.#parts.congestion.chooseEcn();
    if (to === QPS_RTS && from === QPS_RTR) transport.startSending();
    // In ERR already: the pending NAK of an error is still sent.
    if (to === QPS_ERR) this.#parts.lifecycle.stop(from === QPS_ERR);
    else attributes.state = to;
    if (from !== QPS_SQD || to !== QPS_SQD) {
      this.#parts.lifecycle.expectDrained(to === QPS_SQD && asksForDrained(values, mask));
    }
    if (to === QPS_SQD && from === QPS_RTS) transport.drain();
    else if (to === QPS_RESET) this.#reset();
    if (before !== undefined && before !== peer.connection) host.disconnect(before);
    this.#parts.scheduling.schedule();
  }

  settle(): boolean {
    this.#transport.settle();
    this.#isSettling = this.peer.isConnected && this.#transport.owesAnswers;
    return this.#isSettling;
  }

  #noteSettled(): void {
    if (this.#transport.owesAnswers) return;
    this.#isSettling = false;
    this.#parts.host.raise(EVENT_QP_SETTLED, this.qpn);
  }

  get isDraining(): boolean {
    return this.attributes.state === QPS_SQD && this.#transport.hasBegun;
  }

  #startRateControl(): void {
    this.#parts.congestion.restart();
    this.#transport.applyRateControl(this.rate);
    this.#parts.scheduling.cancelResume();
  }

  /** Nothing of the connection is left: every attribute has its initial value (IBTA §10.3.1.1). */
  #reset(): void {
    const { host } = this.#parts;
    Object.assign(this.attributes, initialAttributes());
    this.#startRateControl();
    this.#notifier.cnpsPending = 0;
    this.#isSettling = false;
    this.peer.reset();
    this.#parts.congestion.reset();
    this.#transport.discard();
    host.keys.unbindAllOf(this.qpn);
    this.#parts.lifecycle.reset();
  }

  enterError(): void {
    this.#parts.lifecycle.enterError();
  }

  destroy(): void {
    this.peer.disconnect();
    this.#reset();
  }

  get rate(): RateControl {
    return this.#parts.congestion.control.rate;
  }

  get nextPsns(): NextPsns {
    return this.#transport.nextPsns;
  }

  get progress(): QpProgress {
    return this.#transport.progress;
  }

  watch(memory: ArrayBufferLike): void {
    this.#parts.probe.watch(memory, this.#parts.sendQueue);
  }
}
