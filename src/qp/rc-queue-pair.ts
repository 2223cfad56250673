/**
 * A reliable connected queue pair: requester, completer and responder around one connection (IBTA vol. 1 §9.7).
 */

import type { RateControl } from '../dcqcn/rate-control.js';
import { QP_ATTR_MAX_DEST_RD_ATOMIC, QP_ATTR_TOTAL_TIMEOUT } from '../memory/ring/commands.js';
import { QPS_ERR, QPS_RTR, QPS_RTS, QPS_SQD } from '../memory/ring/enums.js';
import { BTH_TRAILER, INT_DATA_CREDIT, INT_DATA_TIMES, INT_NONE, readWanted } from '../packet/int-trailer.js';
import {
  OP_ACK,
  OP_ATOMIC_ACK,
  OP_READ_RESPONSE,
  OP_TRIMMED,
  VENDOR_SACK,
  VENDOR_TRIM_NAK,
  VENDOR_TRIMMED,
} from '../packet/opcode.js';
import { psnDiff } from '../packet/psn.js';
import type { RocePacket } from '../packet/roce.js';
import { ECN_CE, type RxDatagram, type TxBatch } from '../port/datagram.js';
import { unpackRecovery, usesSack, waysOf } from '../retransmit/schemes.js';
import { Completer } from './completer.js';
import { ConnectedQueuePair } from './connected-queue-pair.js';
import type { NextPsns, QpProgress, QueuePairOptions } from './nic-queue-pair.js';
import { Requester } from './requester.js';
import { Responder } from './responder.js';
import { SendSide } from './send-side.js';
import { RC_TRANSITIONS } from './transitions.js';

/** A reliable connection. */
export class RcQueuePair extends ConnectedQueuePair {
  protected readonly transitions = RC_TRANSITIONS;
  readonly #sendSide: SendSide;
  readonly #requester: Requester;
  readonly #completer: Completer;
  readonly #responder: Responder;
  /** Whose turn it is when both sides have packets to send. */
  #responderFirst = true;

  constructor(options: QueuePairOptions) {
    super(options);
    this.#sendSide = new SendSide(this, options.sendQueue);
    this.#requester = new Requester(this, this.#sendSide);
    this.#completer = new Completer(this, this.#sendSide);
    this.#responder = new Responder(this);
  }

  protected get waysWanted(): number {
    const { recovery, recoveryParameters } = this.attributes;
    return waysOf(unpackRecovery(recovery, recoveryParameters));
  }

  protected startReceiving(): void {
    this.#responder.start();
  }

  protected startSending(): void {
    this.#requester.start();
    this.#askForEchoes();
  }

  protected drain(): void {
    this.#sendSide.retirement.retire();
  }

  protected get hasBegun(): boolean {
    return !this.#sendSide.out.isIdle;
  }

  protected silence(): void {
    this.#responder.silence();
  }

  protected flush(): void {
    this.#requester.flush();
    this.#responder.flush();
  }

  protected discard(): void {
    this.#requester.discard();
    this.#completer.reset();
    this.#responder.discard();
  }

  protected attributesChanged(mask: number): void {
    if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) !== 0) this.#responder.resize();
    if ((mask & QP_ATTR_TOTAL_TIMEOUT) !== 0) this.#sendSide.retransmitter.totalTimeoutChanged();
  }

  protected applyRateControl(rate: RateControl): void {
    this.#sendSide.retransmitter.measureRtt(rate.rttSampleBytes);
    this.#requester.applyRateControl(rate);
    this.#askForEchoes();
  }

  /** What data packets ask for: what the rate control wants, else what the recovery scheme does. */
  #askForEchoes(): void {
    const { intKind } = this.congestion.rate;
    const { wantsEcho } = this.#sendSide.retransmitter.recovery;
    this.dataIntKind = intKind === INT_NONE && wantsEcho ? INT_DATA_TIMES : intKind;
  }

  doorbell(): void {
    if (this.attributes.state === QPS_ERR) this.flush();
    else this.schedule();
  }

  /** RC and CNP; SACK only where the recovery scheme uses it, news of packets that were cut only where the sender said that they may be. */
  carries(packet: RocePacket): boolean {
    const { transport } = packet.info;
    if (transport === 'RC' || transport === 'CNP') return true;
    if (packet.info.kind === OP_TRIMMED) return this.isConnected && this.path.isSpread;
    return packet.opcode === VENDOR_SACK && usesSack(this.attributes.recovery);
  }

  accepts(packet: RocePacket): boolean {
    const { state } = this.attributes;
    if (state === QPS_RTS || state === QPS_SQD) return true;
    return state === QPS_RTR && !isResponse(packet);
  }

  protected receivePacket(packet: RocePacket, datagram: RxDatagram, now: number): void {
    const { bytes, offset, length } = datagram;
    if (packet.info.kind === OP_TRIMMED) {
      this.probe.packetReceived(packet, length, 0);
      if (packet.opcode === VENDOR_TRIMMED) this.#responder.trimmed(packet.psn, now);
      else this.#sendSide.retransmitter.trimmed(packet.psn, now);
      return;
    }
    if (isResponse(packet)) {
      const { unacked } = this.#sendSide.out;
      this.probe.packetReceived(packet, length, 0);
      const { retransmitter } = this.#sendSide;
      retransmitter.onAnswer(now);
      this.#completer.receive(packet, bytes, now);
      retransmitter.judge(now);
      if (this.isConnected) this.#requester.settle();
      if (this.#sendSide.out.unacked !== unacked) this.peerPort.learn(datagram.sourcePort);
      return;
    }
    const { expectedPsn } = this.#responder;
    this.establishCommunication();
    this.probe.packetReceived(packet, length, psnDiff(packet.psn, expectedPsn));
    if (packet.trailerBytes > 0) {
      const { intEcho, credit } = this.#responder;
      intEcho.onData(packet, bytes, datagram.ecn === ECN_CE, now);
      if (intEcho.kind === INT_DATA_CREDIT) {
        credit.onData(readWanted(bytes, packet.trailerOffset + packet.trailerBytes), now);
      }
      bytes[offset + 4] &= ~BTH_TRAILER; // What is kept of the packet has no trailer.
    }
    this.#responder.receive(packet, bytes, offset, length - packet.trailerBytes);
    if (this.#responder.expectedPsn !== expectedPsn) this.peerPort.learn(datagram.sourcePort);
  }

  protected emitPacket(batch: TxBatch, now: number): boolean {
    const { state } = this.attributes;
    const mayRequest = state === QPS_RTS || state === QPS_SQD;
    // An ACK leaves before the requests: it does not part the packets of a block, and the peer's request completes before the answer to it arrives, as with a NIC
    // that acknowledges before software sees the message. A stock `ib_send_lat -e` relies on it: it loses an event, and waits for ever, where the answer comes first.
    if (this.#responder.owesOnlyAck && this.#responder.emit(batch, now)) return true;
    this.#responderFirst = !this.#responderFirst;
    if (this.#responderFirst && this.#responder.emit(batch, now)) return true;
    if (mayRequest && this.#requester.emit(batch, now)) return true;
    if (!this.#responderFirst && this.#responder.emit(batch, now)) return true;
    return this.yieldTurn(this.#requester.hasUnsent || this.#responder.hasWork, now);
  }

  override deadlineChanged(): void {
    this.deadlineNs = this.#nextDeadlineNs;
    this.host.armDeadline(this);
  }

  onDeadline(now: number): void {
    const { retransmitter } = this.#sendSide;
    this.probe.nowNs = now;
    this.notifyIfDue(now);
    retransmitter.onDeadline(now);
    if (this.isConnected) this.#requester.settle();
    this.deadlineNs = this.#nextDeadlineNs;
    if (this.deadlineNs !== Number.POSITIVE_INFINITY) this.host.armDeadline(this);
  }

  get #nextDeadlineNs(): number {
    return Math.min(this.#sendSide.retransmitter.deadlineNs, this.congestion.notification.dueNs);
  }

  get progress(): QpProgress {
    const { out, retransmitter, postedWqes } = this.#sendSide;
    return {
      unackedPsn: out.unacked,
      sendPsn: out.sendPsn,
      newPsn: out.newPsn,
      expectedPsn: this.#responder.expectedPsn,
      msn: this.#responder.msn,
      windowPackets: this.isConnected ? this.#requester.windowPacketsMax : 0,
      postedWqes,
      startedWqes: (out.started - out.head) >>> 0,
      outstandingReads: out.reads.count,
      retriesLeft: retransmitter.retriesLeft,
      rnrRetriesLeft: retransmitter.rnrRetriesLeft,
      waitsForReceiver: retransmitter.waitsForReceiver ? 1 : 0,
    };
  }

  get nextPsns(): NextPsns {
    return { sqPsn: this.#sendSide.out.newPsn, rqPsn: this.#responder.expectedPsn };
  }
}

function isResponse(packet: RocePacket): boolean {
  const { kind } = packet.info;
  return kind === OP_ACK || kind === OP_READ_RESPONSE || kind === OP_ATOMIC_ACK || packet.opcode === VENDOR_TRIM_NAK;
}
