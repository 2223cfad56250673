/** A reliable connection: requester, completer and responder (IBTA vol. 1 §9.7). */

import type { RateControl } from '../dcqcn/rate-control.js';
import { QP_ATTR_MAX_DEST_RD_ATOMIC, QP_ATTR_TOTAL_TIMEOUT } from '../memory/ring/commands.js';
import { QPS_RTR, QPS_RTS, QPS_SQD } from '../memory/ring/enums.js';
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
import { entropiesOf, unpackRecovery, usesSack } from '../retransmit/recovery-schemes.js';
import { Completer } from './completer.js';
import type { NextPsns, QpProgress } from './nic-queue-pair.js';
import { Requester } from './requester.js';
import { Responder } from './responder.js';
import { SendSide } from './send-side.js';
import { RC_TRANSITIONS } from './transitions.js';
import type { QueuePairParts, QueuePairTransport } from './transport.js';

export class RcTransport implements QueuePairTransport {
  readonly transitions = RC_TRANSITIONS;
  readonly #parts: QueuePairParts;
  readonly #sendSide: SendSide;
  readonly #requester: Requester;
  readonly #completer: Completer;
  readonly #responder: Responder;
  #responderFirst = true;
  #isSettling = false;

  constructor(parts: QueuePairParts) {
    this.#parts = parts;
    this.#sendSide = new SendSide(parts);
    this.#requester = new Requester(parts, this.#sendSide);
    this.#completer = new Completer(parts, this.#sendSide);
    this.#responder = new Responder(parts);
  }

  get entropies(): number {
    const { recovery, recoveryParameters } = this.#parts.attributes;
    return entropiesOf(unpackRecovery(recovery, recoveryParameters));
  }

  startReceiving(): void {
    this.#isSettling = false;
    this.#responder.start();
  }

  startSending(): void {
    this.#requester.start();
    this.#chooseTrailer();
  }

  drain(): void {
    this.#sendSide.completion.completeDone();
  }

  settle(): void {
    this.#isSettling = true;
  }

  get owesAnswers(): boolean {
    return this.#responder.hasWork;
  }

  get hasBegun(): boolean {
    return !this.#sendSide.out.isIdle;
  }

  get hasUnsent(): boolean {
    return this.#requester.hasUnsent || this.#responder.hasWork;
  }

  silence(): void {
    this.#responder.silence();
  }

  flushSends(): void {
    this.#requester.flush();
  }

  flushReceives(): void {
    this.#responder.flush();
  }

  discard(): void {
    this.#requester.discard();
    this.#completer.reset();
    this.#responder.discard();
  }

  attributesChanged(mask: number): void {
    if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) !== 0) this.#responder.resize();
    if ((mask & QP_ATTR_TOTAL_TIMEOUT) !== 0) this.#sendSide.retransmitter.totalTimeoutChanged();
  }

  applyRateControl(rate: RateControl): void {
    this.#sendSide.retransmitter.measureRtt(rate.rttSampleBytes);
    this.#requester.applyRateControl(rate);
    this.#chooseTrailer();
  }

  /** Data packets request the telemetry that the rate control needs, or else that of the recovery scheme. */
  #chooseTrailer(): void {
    const { congestion } = this.#parts;
    const { intKind } = congestion.control.rate;
    const { wantsEcho } = this.#sendSide.retransmitter.recovery;
    congestion.dataIntKind = intKind === INT_NONE && wantsEcho ? INT_DATA_TIMES : intKind;
    this.#sendSide.ackRequests.wantsTelemetry = congestion.dataIntKind !== INT_NONE;
  }

  /**
   * RC packets; SACKs only if the recovery scheme uses them, reports of trimmed packets only if the sender allowed
   * trimming.
   */
  carries(packet: RocePacket): boolean {
    if (packet.info.transport === 'RC') return true;
    const { link, attributes } = this.#parts;
    if (packet.info.kind === OP_TRIMMED) return link.isConnected && link.path.isSpread;
    return packet.opcode === VENDOR_SACK && usesSack(attributes.recovery);
  }

  accepts(packet: RocePacket): boolean {
    if (isResponse(packet)) return this.#maySend;
    return !this.#isSettling && (this.#maySend || this.#parts.attributes.state === QPS_RTR);
  }

  get #maySend(): boolean {
    const { state } = this.#parts.attributes;
    return state === QPS_RTS || state === QPS_SQD;
  }

  receive(packet: RocePacket, datagram: RxDatagram, now: number): void {
    const { lifecycle, link, probe } = this.#parts;
    const { bytes, offset, length } = datagram;
    if (packet.info.kind === OP_TRIMMED) {
      probe.current.packetReceived(packet, length, 0);
      if (packet.opcode === VENDOR_TRIMMED) this.#responder.trimmed(packet.psn, now);
      else this.#sendSide.retransmitter.trimmed(packet.psn, now);
      return;
    }
    if (isResponse(packet)) {
      const { out, retransmitter } = this.#sendSide;
      const { unacked } = out;
      probe.current.packetReceived(packet, length, 0);
      retransmitter.onAnswer(now);
      this.#completer.receive(packet, bytes, now);
      retransmitter.detectLosses(now);
      this.#requester.settle();
      if (out.unacked !== unacked) link.port.learn(datagram.sourcePort);
      return;
    }
    const { expectedPsn } = this.#responder;
    lifecycle.establishCommunication();
    probe.current.packetReceived(packet, length, psnDiff(packet.psn, expectedPsn));
    if (packet.trailerBytes > 0) {
      const { intEcho, credit } = this.#responder;
      intEcho.onData(packet, bytes, datagram.ecn === ECN_CE, now);
      if (intEcho.kind === INT_DATA_CREDIT) {
        credit.onData(readWanted(bytes, packet.trailerOffset + packet.trailerBytes), now);
      }
      bytes[offset + 4] &= ~BTH_TRAILER; // Buffered packets have no trailer.
    }
    this.#responder.receive(packet, bytes, offset, length - packet.trailerBytes);
    if (this.#responder.expectedPsn !== expectedPsn) link.port.learn(datagram.sourcePort);
  }

  emit(batch: TxBatch, now: number): boolean {
    const mayRequest = this.#maySend;
    // An ACK leaves before the requests: it does not part the packets of a block, and the peer's request completes
    // before the answer to it arrives, as with a NIC that acknowledges before software sees the message. A stock
    // `ib_send_lat -e` relies on it: it loses an event, and waits indefinitely, where the answer comes first.
    if (this.#responder.owesOnlyAck && this.#responder.emit(batch, now)) return true;
    this.#responderFirst = !this.#responderFirst;
    if (this.#responderFirst && this.#responder.emit(batch, now)) return true;
    if (mayRequest && this.#requester.emit(batch, now)) return true;
    return !this.#responderFirst && this.#responder.emit(batch, now);
  }

  onDeadline(now: number): void {
    this.#sendSide.retransmitter.onDeadline(now);
    this.#requester.settle();
  }

  get deadlineNs(): number {
    return this.#sendSide.retransmitter.deadlineNs;
  }

  get progress(): QpProgress {
    const { out, retransmitter, postedWqes } = this.#sendSide;
    return {
      unackedPsn: out.unacked,
      sendPsn: out.sendPsn,
      newPsn: out.newPsn,
      expectedPsn: this.#responder.expectedPsn,
      msn: this.#responder.msn,
      windowPackets: this.#parts.link.isConnected ? this.#requester.windowPacketsMax : 0,
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
