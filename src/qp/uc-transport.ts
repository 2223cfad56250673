/** An unreliable connection: SEND and RDMA WRITE, with or without immediate data (IBTA vol. 1 §9.8.2). */

import { QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE } from '../memory/ring/enums.js';
import { psnDiff } from '../packet/psn.js';
import type { RocePacket } from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { NextPsns, QpProgress } from './nic-queue-pair.js';
import { UC_TRANSITIONS } from './transitions.js';
import type { QueuePairParts, QueuePairTransport } from './transport.js';
import { UcRequester } from './uc-requester.js';
import { UcResponder } from './uc-responder.js';

export class UcTransport implements QueuePairTransport {
  readonly transitions = UC_TRANSITIONS;
  readonly entropies = 1;
  readonly deadlineNs = Number.POSITIVE_INFINITY;
  readonly #parts: QueuePairParts;
  readonly #requester: UcRequester;
  readonly #responder: UcResponder;

  constructor(parts: QueuePairParts) {
    this.#parts = parts;
    this.#requester = new UcRequester(parts);
    this.#responder = new UcResponder(parts);
  }

  startReceiving(): void {
    this.#responder.start(this.#parts.attributes.rqPsn);
  }

  startSending(): void {
    this.#requester.start(this.#parts.attributes.sqPsn);
  }

  drain(): void {
    this.#requester.drain();
  }

  /** Nothing is answered. */
  settle(): void {}

  get owesAnswers(): boolean {
    return false;
  }

  get hasBegun(): boolean {
    return this.#requester.isInMessage;
  }

  get hasUnsent(): boolean {
    return this.#requester.hasUnsent;
  }

  silence(): void {}

  flushSends(): void {
    this.#requester.flush();
  }

  flushReceives(): void {
    this.#responder.flush();
  }

  discard(): void {
    this.#requester.discard();
    this.#responder.discard();
  }

  attributesChanged(): void {}

  /** Without acknowledgements there are no round trips and no window; the pacer alone applies the rate. */
  applyRateControl(): void {}

  carries({ info }: RocePacket): boolean {
    return info.transport === 'UC';
  }

  accepts(): boolean {
    const { state } = this.#parts.attributes;
    return state === QPS_RTR || state === QPS_RTS || state === QPS_SQD || state === QPS_SQE;
  }

  receive(packet: RocePacket, datagram: RxDatagram): void {
    const { lifecycle, link, probe } = this.#parts;
    lifecycle.establishCommunication();
    const distance = psnDiff(packet.psn, this.#responder.expectedPsn);
    probe.current.packetReceived(packet, datagram.length, distance);
    this.#responder.receive(packet, datagram.bytes);
    // A message may begin with any PSN; only one in sequence shows that the sender knows it.
    if (distance === 0) link.port.learn(datagram.sourcePort);
  }

  emit(batch: TxBatch, now: number): boolean {
    const { state } = this.#parts.attributes;
    return (state === QPS_RTS || state === QPS_SQD) && this.#requester.emit(batch, now);
  }

  onDeadline(): void {}

  get progress(): QpProgress {
    const { psn, postedWqes, isInMessage } = this.#requester;
    return {
      unackedPsn: psn,
      sendPsn: psn,
      newPsn: psn,
      expectedPsn: this.#responder.expectedPsn,
      msn: this.#responder.msn,
      windowPackets: 0,
      postedWqes,
      startedWqes: isInMessage ? 1 : 0,
      outstandingReads: 0,
      retriesLeft: 0,
      rnrRetriesLeft: 0,
      waitsForReceiver: 0,
    };
  }

  get nextPsns(): NextPsns {
    return { sqPsn: this.#requester.psn, rqPsn: this.#responder.expectedPsn };
  }
}
