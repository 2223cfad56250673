/** An unreliable connected queue pair: SEND and RDMA WRITE, with or without immediate data, to one peer (IBTA vol. 1 §9.8.2). */

import { QPS_ERR, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE } from '../memory/ring/enums.js';
import { psnDiff } from '../packet/psn.js';
import type { RocePacket } from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import { ConnectedQueuePair } from './connected-queue-pair.js';
import type { NextPsns, QpProgress, QueuePairOptions } from './nic-queue-pair.js';
import { UC_TRANSITIONS } from './transitions.js';
import { UcRequester } from './uc-requester.js';
import { UcResponder } from './uc-responder.js';

/** UC. */
/** An unreliable connection. */
export class UcQueuePair extends ConnectedQueuePair {
  protected readonly transitions = UC_TRANSITIONS;
  readonly #requester: UcRequester;
  readonly #responder: UcResponder;

  constructor(options: QueuePairOptions) {
    super(options);
    this.#requester = new UcRequester(this, options.sendQueue);
    this.#responder = new UcResponder(this);
  }

  protected readonly waysWanted = 1;

  protected startReceiving(): void {
    this.#responder.start(this.attributes.rqPsn);
  }

  protected startSending(): void {
    this.#requester.start(this.attributes.sqPsn);
  }

  protected drain(): void {
    this.#requester.drain();
  }

  protected get hasBegun(): boolean {
    return this.#requester.isInMessage;
  }

  /** Nothing is answered. */
  protected silence(): void {}

  protected flush(): void {
    this.#requester.flush();
    this.#responder.flush();
  }

  protected discard(): void {
    this.#requester.discard();
    this.#responder.discard();
  }

  protected attributesChanged(): void {}

  /** Without acknowledgements there are no round trips and no window; the pacer obeys the rate. */
  protected applyRateControl(): void {}

  doorbell(): void {
    const { state } = this.attributes;
    if (state === QPS_ERR) this.flush();
    else if (state === QPS_SQE) this.#requester.flush();
    else this.schedule();
  }

  carries({ info }: RocePacket): boolean {
    return info.transport === 'UC' || info.transport === 'CNP';
  }

  accepts(): boolean {
    const { state } = this.attributes;
    return state === QPS_RTR || state === QPS_RTS || state === QPS_SQD || state === QPS_SQE;
  }

  protected receivePacket(packet: RocePacket, datagram: RxDatagram): void {
    this.establishCommunication();
    const distance = psnDiff(packet.psn, this.#responder.expectedPsn);
    this.probe.packetReceived(packet, datagram.length, distance);
    this.#responder.receive(packet, datagram.bytes);
    // A message may begin with any PSN; only one in sequence proves that the sender knows it.
    if (distance === 0) this.peerPort.learn(datagram.sourcePort);
  }

  protected emitPacket(batch: TxBatch, now: number): boolean {
    const { state } = this.attributes;
    if ((state === QPS_RTS || state === QPS_SQD) && this.#requester.emit(batch, now)) return true;
    return this.yieldTurn(this.#requester.hasUnsent, now);
  }

  /** There is no timer but that of notifications. */
  onDeadline(now: number): void {
    this.notifyIfDue(now);
    this.deadlineNs = Number.POSITIVE_INFINITY;
  }

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
