/**
 * The responder: executes request packets in PSN order and answers them (IBTA vol. 1 §9.7.4, §9.7.5). Owns the expected
 * PSN and the MSN.
 *
 * Checks run in the order PSN, opcode sequence, QP access, resources, length, key, execution; the first that fails
 * decides the answer. Answers leave in request order: an ACK never overtakes a READ response or atomic result that is
 * still pending.
 */

import { COUNTER } from '../memory/ring/counters.js';
import { EVENT_QP_REORDER_CONFLICT, QPS_ERR, STATUS_REM_INV_REQ_ERR } from '../memory/ring/enums.js';
import { NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS } from '../packet/aeth.js';
import { INT_DATA_CREDIT } from '../packet/int-trailer.js';
import * as op from '../packet/opcode.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import { PARSE_OK, parseRoce, RocePacket } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import {
  AHEAD_BUFFERED,
  AHEAD_CONFLICT,
  AHEAD_NAK,
  AHEAD_RESTART_MESSAGE,
  type ReceiverRecovery,
} from '../retransmit/recovery.js';
import { createReceiver, recoverySettings, STANDARD_RECOVERY, unpackRecovery } from '../retransmit/recovery-schemes.js';
import { Acknowledger } from './acknowledger.js';
import { IntEchoState } from './int-echo-state.js';
import { EMIT_LOST_MEMORY, EMIT_SENT, REQUEST_REFUSED, ReadResponder } from './read-responder.js';
import { NOT_READY, PLACED_LAST, REFUSED, Reassembler } from './reassembler.js';
import { ReceiverCreditState } from './receiver-credit-state.js';
import type { QueuePairParts } from './transport.js';
import { TrimReports } from './trim-reports.js';

export class Responder {
  readonly #parts: QueuePairParts;
  expectedPsn = 0;
  msn = 0;
  #recovery: ReceiverRecovery = createReceiver(recoverySettings(STANDARD_RECOVERY));
  readonly #reassembler: Reassembler;
  readonly #reads: ReadResponder;
  readonly #acknowledger: Acknowledger;
  readonly #trimReports: TrimReports;
  readonly intEcho = new IntEchoState();
  readonly credit: ReceiverCreditState;
  /**
   * The gap at the expected PSN has been reported, or its packet was refused with an RNR NAK: later packets are dropped
   * silently.
   */
  #nakSent = false;
  readonly #buffered = new RocePacket();

  constructor(parts: QueuePairParts) {
    this.#parts = parts;
    this.#reassembler = new Reassembler(parts);
    this.#reads = new ReadResponder(parts, this.#recovery);
    this.#acknowledger = new Acknowledger(parts, this.intEcho);
    this.#trimReports = new TrimReports(parts);
    this.credit = new ReceiverCreditState(parts, (granted) => {
      this.intEcho.grant(granted);
      this.#acknowledger.acknowledge();
      parts.scheduling.schedule();
    });
  }

  start(): void {
    const { attributes, host } = this.#parts;
    this.#recovery = createReceiver(unpackRecovery(attributes.recovery, attributes.recoveryParameters), host.context);
    this.#reads.start(this.#recovery);
    this.expectedPsn = attributes.rqPsn;
    this.#reset(this.#parts.link.inFlightLimit.limitPackets);
  }

  resize(): void {
    this.#reads.resize();
  }

  #reset(windowPackets: number): void {
    this.msn = 0;
    this.#recovery.reset(windowPackets);
    this.intEcho.reset();
    this.credit.reset();
    this.silence();
    this.#nakSent = false;
    this.#reassembler.endMessage();
  }

  discard(): void {
    this.#reassembler.receives.discard();
    this.expectedPsn = 0;
    this.#reset(0);
  }

  /** Entering ERR: answers to executed requests are still sent; a receive WQE in use is flushed. */
  flush(): void {
    this.credit.reset();
    this.#reassembler.endMessage();
    this.#reassembler.receives.flush();
  }

  /** Drops pending answers: the owner put the QP into ERR. */
  silence(): void {
    this.#reads.clear();
    this.#acknowledger.clear();
    this.#trimReports.clear();
  }

  get hasWork(): boolean {
    return this.#acknowledger.isPending || this.#reads.isPending || this.#trimReports.isPending;
  }

  get owesOnlyAck(): boolean {
    return this.#acknowledger.isAckAlone && !this.#reads.isPending && !this.#trimReports.isPending;
  }

  receive(packet: RocePacket, bytes: Uint8Array, packetOffset: number, packetBytes: number): void {
    if (this.#acknowledger.isFatal) return;
    const distance = psnDiff(packet.psn, this.expectedPsn);
    if (distance > 0) {
      this.#ahead(packet.psn, distance, bytes, packetOffset, packetBytes);
      return;
    }
    if (distance < 0) {
      if (!this.#recovery.restartsMessage(packet.psn, this.#reassembler.startPsn)) {
        if (this.#recovery.isConflictingDuplicate(packet.psn, bytes, packetOffset, packetBytes)) this.#conflict();
        this.#duplicate(packet);
        return;
      }
      this.#restartMessage();
    }
    const filledGap = this.#nakSent;
    this.#execute(packet, bytes);
    this.#executeBuffered(filledGap);
    this.#parts.scheduling.schedule();
  }

  /** The packet with this PSN was trimmed: it is requested again at once, unless a copy has arrived. */
  trimmed(psn: number, now: number): void {
    if (this.#acknowledger.isFatal) return;
    this.#parts.host.counters[COUNTER.rx_trimmed]++;
    if (psnDiff(psn, this.expectedPsn) < 0 || this.#recovery.holds(psn)) return;
    this.#trimReports.add(psn);
    if (this.intEcho.kind === INT_DATA_CREDIT) this.credit.onTrimmed(now);
    this.#parts.scheduling.schedule();
  }

  /** Executes packets that selective repeat has buffered after a gap that is now filled. */
  #executeBuffered(filledGap: boolean): void {
    for (;;) {
      if (this.#parts.attributes.state === QPS_ERR) return; // Nothing is executed after an error of any kind.
      const before = this.expectedPsn;
      const buffered = this.#acknowledger.isRefusing ? undefined : this.#recovery.takeBuffered(before);
      if (buffered === undefined) break;
      if (parseRoce(buffered.bytes, 0, buffered.length, this.#buffered) !== PARSE_OK) break;
      this.#execute(this.#buffered, buffered.bytes);
      if (this.expectedPsn === before) break;
    }
    // The sender's window may be closed until this arrives.
    if (filledGap) this.#acknowledger.acknowledge();
  }

  #ahead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): void {
    const { counters } = this.#parts.host;
    counters[COUNTER.out_of_sequence]++;
    // Until the peer's port is settled, packets ahead of a gap are not buffered: an attacker's would be executed when
    // the peer fills the gap.
    const verdict = this.#parts.link.port.isSettled
      ? this.#recovery.onAhead(psn, distance, bytes, offset, length)
      : AHEAD_NAK;
    if (verdict === AHEAD_NAK || verdict === AHEAD_RESTART_MESSAGE) {
      if (this.#nakSent) return;
      if (verdict === AHEAD_RESTART_MESSAGE) this.#restartMessage();
    } else {
      if (verdict === AHEAD_CONFLICT) this.#conflict();
      else counters[verdict === AHEAD_BUFFERED ? COUNTER.reorder_stored : COUNTER.reorder_dropped]++;
      if (this.#acknowledger.isRefusing) return;
    }
    if (!this.#recovery.reportsGaps) {
      // The peer's rate control waits for the echo, also during a gap.
      if (!this.intEcho.isPending) return;
      this.#acknowledger.acknowledge();
      this.#parts.scheduling.schedule();
      return;
    }
    this.#nakSent = true;
    this.#acknowledger.reportGap();
    this.#parts.scheduling.schedule();
  }

  /** Two different packets with one PSN: one of them is forged. */
  #conflict(): void {
    this.#parts.host.counters[COUNTER.reorder_conflicts]++;
    this.#parts.link.warn(EVENT_QP_REORDER_CONFLICT);
  }

  /** Go-back-0: the message in progress starts over; a receive WQE it took stays with it. */
  #restartMessage(): void {
    if (!this.#reassembler.isInMessage) return;
    this.expectedPsn = this.#reassembler.startPsn;
    this.#reassembler.endMessage();
  }

  #duplicate(packet: RocePacket): void {
    this.#parts.host.counters[COUNTER.duplicate_request]++;
    const { kind } = packet.info;
    if (kind !== op.OP_SEND && kind !== op.OP_WRITE) this.#replay(packet);
    // Also without AckReq: a retransmitting peer does not know which packets have arrived, and the one with AckReq may
    // be lost each time.
    else this.#acknowledger.acknowledge();
    this.#parts.scheduling.schedule();
  }

  #replay(packet: RocePacket): void {
    const expectedPsn = this.#reads.replay(packet, this.expectedPsn, this.msn);
    if (expectedPsn === REQUEST_REFUSED) this.#fail(this.#reads.refusedSyndrome, packet.psn, STATUS_REM_INV_REQ_ERR);
    else if (expectedPsn !== this.expectedPsn) {
      this.expectedPsn = expectedPsn;
      this.#gapFilled();
    }
  }

  #gapFilled(): void {
    this.#nakSent = false;
    this.#acknowledger.gapFilled();
  }

  /** Advances it, unless the packet is refused. */
  #execute(packet: RocePacket, bytes: Uint8Array): void {
    this.#gapFilled();
    const { kind } = packet.info;
    if (!this.#reassembler.isInSequence(packet)) this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
    else if (kind === op.OP_SEND || kind === op.OP_WRITE) this.#executeData(packet, bytes);
    else this.#executeRequest(packet, bytes);
  }

  #executeData(packet: RocePacket, bytes: Uint8Array): void {
    const reassembler = this.#reassembler;
    const verdict = reassembler.place(packet, bytes);
    if (verdict === NOT_READY) {
      this.#notReady();
      return;
    }
    if (verdict === REFUSED) {
      this.#fail(reassembler.refusedSyndrome, packet.psn, reassembler.refusedStatus);
      return;
    }
    this.expectedPsn = psnAdd(packet.psn, 1);
    if (packet.ackReq) this.#acknowledger.acknowledge();
    if (verdict !== PLACED_LAST) return;
    this.msn = psnAdd(this.msn, 1);
    // Class J: a key that cannot be invalidated is a local error only. The data is placed and acknowledged, and the QP
    // stops.
    if (!reassembler.complete(packet)) this.#parts.lifecycle.enterError(true);
  }

  #executeRequest(packet: RocePacket, bytes: Uint8Array): void {
    const psns = this.#reads.execute(packet, bytes, psnAdd(this.msn, 1));
    if (psns === REQUEST_REFUSED) this.#fail(this.#reads.refusedSyndrome, packet.psn, STATUS_REM_INV_REQ_ERR);
    if (psns <= 0) return;
    this.expectedPsn = psnAdd(packet.psn, psns);
    this.msn = psnAdd(this.msn, 1);
  }

  /** No receive WQE: nothing changes here, the requester waits and sends this packet again. */
  #notReady(): void {
    this.#parts.host.counters[COUNTER.out_of_buffer]++;
    this.#acknowledger.notReady();
    this.#nakSent = true;
  }

  /** A request that cannot be executed: the NAK is the last packet of this QP. */
  #fail(syndrome: number, psn: number, receiveStatus: number): void {
    this.#acknowledger.refuse(syndrome, psn);
    this.#reassembler.endMessage();
    this.#reassembler.receives.fail(receiveStatus);
    this.#parts.lifecycle.enterError(true);
  }

  /** False: nothing is pending, or READ responses wait for the pacer and answers after them. */
  emit(batch: TxBatch, now: number): boolean {
    if (this.#trimReports.isPending) {
      this.#trimReports.emit(batch);
      return true;
    }
    const outcome = this.#reads.emit(batch, now);
    if (outcome === EMIT_SENT) return true;
    if (outcome === EMIT_LOST_MEMORY) this.#fail(NAK_REMOTE_ACCESS, this.#reads.lostPsn, STATUS_REM_INV_REQ_ERR);
    else if (this.#reads.isPending) return false;
    if (!this.#acknowledger.isPending) return false;
    this.#acknowledger.emit(batch, this.expectedPsn, this.msn, this.#recovery, now);
    return true;
  }
}
