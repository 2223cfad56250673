/**
 * The responder: executes request packets in PSN order and answers them (IBTA vol. 1 §9.7.4, §9.7.5). Owns the expected PSN, the MSN and
 * the message in progress.
 *
 * Checks run in the order PSN, opcode sequence, QP access, resources, length, key, execution; the first that fails decides the answer.
 * Answers leave in request order: an ACK never overtakes a READ response or atomic result that is still owed.
 */

import { copyBytes } from '../core/bytes.js';
import { MEMORY_OK, MemoryRange } from '../memory/key-table.js';
import { SgeCursor } from '../memory/sge-cursor.js';
import {
  NAK_INVALID_REQUEST,
  NAK_PSN_SEQUENCE,
  NAK_REMOTE_ACCESS,
  NAK_REMOTE_OPERATION,
  SYNDROME_ACK,
  SYNDROME_RNR,
} from '../packet/aeth.js';
import * as op from '../packet/opcode.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import {
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  PARSE_OK,
  parseRoce,
  RocePacket,
  writeAeth,
  writeAtomicAckEth,
  writeBth,
} from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import {
  AHEAD_FORGET_MESSAGE,
  AHEAD_KEPT,
  AHEAD_NAK,
  REPLAY_REWIND,
  type ReceiverRecovery,
} from '../retransmit/recovery.js';
import { createReceiver, recoverySettings, STANDARD_RECOVERY, unpackRecovery } from '../retransmit/schemes.js';
import { Cqe } from '../ring/completion-ring.js';
import { COUNTER } from '../ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  ACCESS_REMOTE_ATOMIC,
  ACCESS_REMOTE_READ,
  ACCESS_REMOTE_WRITE,
  QPS_ERR,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_REM_INV_REQ_ERR,
  STATUS_SUCCESS,
  STATUS_WR_FLUSH_ERR,
  WC_FLAG_SOLICITED,
  WC_FLAG_WITH_IMM,
  WC_FLAG_WITH_INV,
  WC_RECV,
  WC_RECV_RDMA_WITH_IMM,
} from '../ring/enums.js';
import { WAIT_PACING } from '../ring/telemetry-page.js';
import { MESSAGE_BYTES_MAX, RecvWqe } from '../ring/work-queue.js';
import type { RcShared } from './rc-shared.js';
import {
  RECORD_ATOMIC,
  RECORD_READ,
  type ResponderRecord,
  ResponderRecords,
  type ResponseJob,
  ResponseQueue,
} from './response-queue.js';

const TX_DATA_PACKETS = COUNTER.tx_data_packets;
const NO_MESSAGE = -1;

/** What answer without data is owed; a higher one replaces a lower one. */
const DUE_NOTHING = 0;
const DUE_ACK = 1;
const DUE_SEQUENCE_NAK = 2;
const DUE_RNR = 3;
const DUE_FATAL = 4;

export class Responder {
  readonly #qp: RcShared;
  expectedPsn = 0;
  msn = 0;
  #recovery: ReceiverRecovery = createReceiver(recoverySettings(STANDARD_RECOVERY));
  #records = new ResponderRecords(0);
  #responses = new ResponseQueue(0);
  #due = DUE_NOTHING;
  #fatalSyndrome = 0;
  #fatalPsn = 0;
  /** The gap at the expected PSN has been reported, or its packet refused as not ready: what follows is dropped in silence. */
  #nakSent = false;

  /** Message in progress: OP_SEND, OP_WRITE or 0, and where it began. */
  #message = 0;
  #messageStart = NO_MESSAGE;
  #receivedBytes = 0;
  /** WRITE: the whole length, and the memory it goes to. */
  #writeBytes = 0;
  readonly #writeRange = new MemoryRange();
  readonly #recv = new RecvWqe();
  readonly #sink = new SgeCursor();
  readonly #range = new MemoryRange();
  readonly #kept = new RocePacket();
  readonly #cqe = new Cqe();

  constructor(qp: RcShared) {
    this.#qp = qp;
  }

  /** INIT to RTR: from here on requests are executed. */
  start(): void {
    const { attributes } = this.#qp;
    this.#recovery = createReceiver(unpackRecovery(attributes.recovery, attributes.recoveryParameters));
    this.#records = new ResponderRecords(attributes.maxDestRdAtomic);
    this.#responses = new ResponseQueue(attributes.maxDestRdAtomic);
    this.expectedPsn = attributes.rqPsn;
    this.reset();
  }

  /** max_dest_rd_atomic has changed. */
  resize(): void {
    const { maxDestRdAtomic } = this.#qp.attributes;
    this.#records.resize(maxDestRdAtomic);
    this.#responses.resize(maxDestRdAtomic);
  }

  /** Forgets everything but the attributes. */
  reset(): void {
    this.msn = 0;
    this.#recovery.reset();
    this.#responses.clear();
    this.#due = DUE_NOTHING;
    this.#nakSent = false;
    this.#endMessage();
    this.#recv.bound = false;
  }

  get hasWork(): boolean {
    return this.#due !== DUE_NOTHING || this.#responses.count > 0;
  }

  // ---- receiving

  /** A request packet that passed all checks of the receive path. */
  receive(packet: RocePacket, bytes: Uint8Array, packetOffset: number, packetBytes: number): void {
    if (this.#due === DUE_FATAL) return;
    const distance = psnDiff(packet.psn, this.expectedPsn);
    if (distance > 0) {
      this.#ahead(packet.psn, distance, bytes, packetOffset, packetBytes);
      return;
    }
    if (distance < 0) {
      if (!this.#recovery.restartsMessage(packet.psn, this.#messageStart)) {
        this.#duplicate(packet);
        return;
      }
      this.#forgetMessage();
    }
    const filledGap = this.#nakSent;
    this.#execute(packet, bytes);
    this.#executeKept(filledGap);
    this.#qp.schedule();
  }

  /** After a gap has been filled: what selective repeat kept behind it. */
  #executeKept(filledGap: boolean): void {
    for (;;) {
      if (this.#qp.attributes.state === QPS_ERR) return; // Nothing follows an error, however it came about.
      const before = this.expectedPsn;
      const kept = this.#due >= DUE_RNR ? undefined : this.#recovery.takeKept(before);
      if (kept === undefined) break;
      if (parseRoce(kept.bytes, 0, kept.length, this.#kept) !== PARSE_OK) break;
      this.#execute(this.#kept, kept.bytes);
      if (this.expectedPsn === before) break; // Not ready for it: it will be sent again.
    }
    // The sender may be waiting at its window for this news.
    if (filledGap && this.#due === DUE_NOTHING) this.#due = DUE_ACK;
  }

  #ahead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): void {
    const { counters } = this.#qp.host;
    counters[COUNTER.out_of_sequence]++;
    const verdict = this.#recovery.onAhead(psn, distance, bytes, offset, length);
    if (verdict === AHEAD_NAK || verdict === AHEAD_FORGET_MESSAGE) {
      if (this.#nakSent) return;
      if (verdict === AHEAD_FORGET_MESSAGE) this.#forgetMessage();
    } else {
      counters[verdict === AHEAD_KEPT ? COUNTER.reorder_stored : COUNTER.reorder_dropped]++;
      if (this.#due >= DUE_RNR) return;
    }
    this.#nakSent = true;
    this.#due = Math.max(this.#due, DUE_SEQUENCE_NAK);
    this.#qp.schedule();
  }

  /** Go-back-0: the message in progress starts over; a receive WQE it took stays with it. */
  #forgetMessage(): void {
    if (this.#messageStart === NO_MESSAGE) return;
    this.expectedPsn = this.#messageStart;
    this.#endMessage();
  }

  #duplicate(packet: RocePacket): void {
    this.#qp.host.counters[COUNTER.duplicate_request]++;
    if (packet.info.kind === op.OP_READ_REQUEST) this.#replayRead(packet);
    else if (packet.info.kind === op.OP_ATOMIC) this.#replayAtomic(packet);
    // Asked for or not: who sends again does not know what has arrived, and the packet that asks may be the one that is always lost.
    else if (this.#due === DUE_NOTHING) this.#due = DUE_ACK;
    this.#qp.schedule();
  }

  /** What was expected has come: a report that it is missing is void. */
  #gapFilled(): void {
    this.#nakSent = false;
    if (this.#due === DUE_SEQUENCE_NAK || this.#due === DUE_RNR) this.#due = DUE_ACK;
  }

  /** The packet with the expected PSN. Advances it, unless the packet is refused. */
  #execute(packet: RocePacket, bytes: Uint8Array): void {
    this.#gapFilled();
    const { kind, place } = packet.info;
    const continues = place === op.PLACE_MIDDLE || place === op.PLACE_LAST;
    if (continues ? this.#message !== kind : this.#message !== 0) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    switch (kind) {
      case op.OP_SEND:
        this.#executeSend(packet, bytes);
        return;
      case op.OP_WRITE:
        this.#executeWrite(packet, bytes);
        return;
      case op.OP_READ_REQUEST:
        this.#executeRead(packet);
        return;
      default:
        this.#executeAtomic(packet);
    }
  }

  /** The payload length that the place in the message demands (IBTA §9.7.4.1.6). */
  #lengthFits(packet: RocePacket): boolean {
    const mtu = this.#qp.mtuBytes;
    switch (packet.info.place) {
      case op.PLACE_FIRST:
      case op.PLACE_MIDDLE:
        return packet.payloadBytes === mtu && packet.padBytes === 0;
      case op.PLACE_LAST:
        return packet.payloadBytes >= 1 && packet.payloadBytes <= mtu;
      default:
        return packet.payloadBytes <= mtu;
    }
  }

  #executeSend(packet: RocePacket, bytes: Uint8Array): void {
    const { place } = packet.info;
    const begins = place === op.PLACE_FIRST || place === op.PLACE_ONLY;
    if (begins && !this.#bindReceive()) {
      this.#notReady();
      return;
    }
    if (!this.#lengthFits(packet)) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    if (begins) {
      this.#beginMessage(op.OP_SEND, packet.psn);
      if (!this.#sink.load(this.#recv.sges, this.#qp.host.keys, this.#qp.pd, ACCESS_LOCAL_WRITE)) {
        this.#fail(NAK_REMOTE_OPERATION, packet.psn, STATUS_LOC_PROT_ERR);
        return;
      }
    } else if (!this.#sink.stillValid) {
      this.#fail(NAK_REMOTE_OPERATION, packet.psn, STATUS_LOC_PROT_ERR);
      return;
    }
    if (this.#receivedBytes + packet.payloadBytes > this.#sink.totalBytes) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_LOC_LEN_ERR);
      return;
    }
    this.#sink.scatter(this.#receivedBytes, packet.payloadBytes, bytes, packet.payloadOffset);
    this.#receivedBytes += packet.payloadBytes;
    this.#accept(packet);
    if (place !== op.PLACE_LAST && place !== op.PLACE_ONLY) return;
    this.msn = psnAdd(this.msn, 1);
    this.#qp.host.counters[COUNTER.rx_send_messages]++;
    this.#completeSend(packet);
  }

  #completeSend(packet: RocePacket): void {
    const { headers } = packet.info;
    const bytes = this.#receivedBytes;
    this.#endMessage();
    let flags = packet.solicited ? WC_FLAG_SOLICITED : 0;
    let immediate = 0;
    if ((headers & op.HDR_IMM) !== 0) {
      flags |= WC_FLAG_WITH_IMM;
      immediate = packet.immediate;
    } else if ((headers & op.HDR_IETH) !== 0) {
      flags |= WC_FLAG_WITH_INV;
      immediate = packet.invalidateRkey;
      if (!this.#qp.host.keys.invalidate(packet.invalidateRkey, this.#qp.pd, this.#qp.qpn)) {
        // Class J: the error is ours alone. The data is placed and acknowledged, the QP stops.
        this.#completeReceive(STATUS_REM_INV_REQ_ERR, WC_RECV, 0, 0, 0);
        this.#qp.enterError(true);
        return;
      }
    }
    this.#completeReceive(STATUS_SUCCESS, WC_RECV, flags, bytes, immediate);
  }

  #executeWrite(packet: RocePacket, bytes: Uint8Array): void {
    const qp = this.#qp;
    const { place, headers } = packet.info;
    const begins = place === op.PLACE_FIRST || place === op.PLACE_ONLY;
    const ends = place === op.PLACE_LAST || place === op.PLACE_ONLY;
    if ((qp.attributes.accessFlags & ACCESS_REMOTE_WRITE) === 0) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    const withImmediate = (headers & op.HDR_IMM) !== 0;
    if (withImmediate && !this.#bindReceive()) {
      this.#notReady();
      return;
    }
    if (!this.#lengthFits(packet) || (begins && packet.dmaLength > MESSAGE_BYTES_MAX)) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    const total = begins ? packet.dmaLength : this.#writeBytes;
    const received = begins ? 0 : this.#receivedBytes;
    // The message must end exactly where its RETH said.
    if (ends ? received + packet.payloadBytes !== total : received + packet.payloadBytes >= total) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    if (begins) {
      // A message of zero bytes touches nothing, so its key is not looked at (IBTA C9-88).
      if (total > 0 && !this.#resolve(packet, packet.dmaLength, ACCESS_REMOTE_WRITE, this.#writeRange)) return;
      this.#beginMessage(op.OP_WRITE, packet.psn);
      this.#writeBytes = total;
    } else if (!this.#writeRange.stillValid) {
      this.#fail(NAK_REMOTE_ACCESS, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    const range = this.#writeRange;
    copyBytes(bytes, packet.payloadOffset, range.bytes, range.offset + received, packet.payloadBytes);
    this.#receivedBytes = received + packet.payloadBytes;
    this.#accept(packet);
    if (!ends) return;
    this.msn = psnAdd(this.msn, 1);
    qp.host.counters[COUNTER.rx_write_requests]++;
    this.#endMessage();
    if (!withImmediate) return;
    const flags = WC_FLAG_WITH_IMM | (packet.solicited ? WC_FLAG_SOLICITED : 0);
    this.#completeReceive(STATUS_SUCCESS, WC_RECV_RDMA_WITH_IMM, flags, total, packet.immediate);
  }

  #executeRead(packet: RocePacket): void {
    const qp = this.#qp;
    const record = this.#records.oldest;
    const refused =
      (qp.attributes.accessFlags & ACCESS_REMOTE_READ) === 0 ||
      record === undefined ||
      packet.dmaLength > MESSAGE_BYTES_MAX ||
      this.#responses.owesFirstAnswer(record); // More at once than agreed.
    if (refused) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    if (packet.dmaLength > 0 && !this.#resolve(packet, packet.dmaLength, ACCESS_REMOTE_READ, this.#range)) return;
    const job = this.#responses.append();
    if (job === undefined) return; // Only repeated requests can fill the queue; this one will be repeated too.
    job.range.copyFrom(this.#range);
    const psns = Math.max(1, Math.ceil(packet.dmaLength / qp.mtuBytes));
    const taken = this.#records.take();
    taken.kind = RECORD_READ;
    taken.firstPsn = packet.psn;
    taken.lastPsn = psnAdd(packet.psn, psns - 1);
    taken.rkey = packet.rkey;
    taken.vaHigh = packet.vaHigh;
    taken.vaLow = packet.vaLow;
    taken.lengthBytes = packet.dmaLength;
    this.expectedPsn = psnAdd(packet.psn, psns);
    this.msn = psnAdd(this.msn, 1);
    this.#fillReadJob(job, packet.psn, psns, packet.dmaLength, taken);
    qp.host.counters[COUNTER.rx_read_requests]++;
  }

  #fillReadJob(
    job: ResponseJob,
    psn: number,
    psns: number,
    lengthBytes: number,
    firstAnswerOf: ResponderRecord | undefined,
  ): void {
    job.kind = RECORD_READ;
    job.startPsn = psn;
    job.cursorPsn = psn;
    job.lastPsn = psnAdd(psn, psns - 1);
    job.msn = this.msn;
    job.lengthBytes = lengthBytes;
    job.firstAnswerOf = firstAnswerOf;
  }

  #replayRead(packet: RocePacket): void {
    const psns = Math.max(1, Math.ceil(packet.dmaLength / this.#qp.mtuBytes));
    const lastPsn = psnAdd(packet.psn, psns - 1);
    if (packet.dmaLength > MESSAGE_BYTES_MAX) return;
    if (!this.#recovery.restartsReads) {
      // Never beyond what was executed: the expected PSN already counts the whole original request.
      if (psnDiff(lastPsn, this.expectedPsn) >= 0) return;
      const record = this.#records.find(RECORD_READ, packet.psn);
      if (record === undefined || !liesInside(packet, record)) return;
    }
    if (packet.dmaLength > 0 && !this.#resolve(packet, packet.dmaLength, ACCESS_REMOTE_READ, this.#range)) return;
    if (this.#recovery.replay === REPLAY_REWIND) this.#rewindResponses(packet.psn);
    else if (this.#responses.owes(packet.psn, lastPsn)) return;
    const job = this.#responses.append();
    if (job === undefined) return;
    job.range.copyFrom(this.#range);
    this.#fillReadJob(job, packet.psn, psns, packet.dmaLength, undefined);
    if (psnDiff(lastPsn, this.expectedPsn) < 0) return;
    this.expectedPsn = psnAdd(lastPsn, 1);
    this.#gapFilled();
  }

  /** The requester has gone back to `psn`. Counted like its own rewinds: what was sent beyond that point was sent in vain. */
  #rewindResponses(psn: number): void {
    const { counters } = this.#qp.host;
    const reached = this.#responses.front?.cursorPsn ?? this.expectedPsn;
    const beyond = psnDiff(reached, psn) - 1;
    // A READ in several requests is repeated in several, and only the first of them goes back.
    if (beyond >= 0) {
      counters[COUNTER.retry_rewinds]++;
      counters[COUNTER.retry_rewind_packets] += beyond;
    }
    this.#responses.rewindTo(psn);
  }

  #executeAtomic(packet: RocePacket): void {
    const qp = this.#qp;
    const record = this.#records.oldest;
    const refused =
      (qp.attributes.accessFlags & ACCESS_REMOTE_ATOMIC) === 0 ||
      record === undefined ||
      (packet.vaLow & 7) !== 0 ||
      this.#responses.owesFirstAnswer(record);
    if (refused) {
      this.#fail(NAK_INVALID_REQUEST, packet.psn, STATUS_REM_INV_REQ_ERR);
      return;
    }
    const range = this.#range;
    if (!this.#resolve(packet, 8, ACCESS_REMOTE_ATOMIC, range)) return;
    const job = this.#responses.append();
    if (job === undefined) return;
    const taken = this.#records.take();
    taken.kind = RECORD_ATOMIC;
    taken.firstPsn = packet.psn;
    taken.lastPsn = packet.psn;
    taken.origLow = readLittleEndian(range.bytes, range.offset);
    taken.origHigh = readLittleEndian(range.bytes, range.offset + 4);
    applyAtomic(packet, taken, range);
    this.msn = psnAdd(this.msn, 1);
    this.expectedPsn = psnAdd(packet.psn, 1);
    this.#fillAtomicJob(job, taken, taken);
    qp.host.counters[COUNTER.rx_atomic_requests]++;
  }

  #fillAtomicJob(job: ResponseJob, record: ResponderRecord, firstAnswerOf: ResponderRecord | undefined): void {
    job.kind = RECORD_ATOMIC;
    job.startPsn = record.firstPsn;
    job.cursorPsn = record.firstPsn;
    job.lastPsn = record.firstPsn;
    job.msn = this.msn;
    job.origHigh = record.origHigh;
    job.origLow = record.origLow;
    job.firstAnswerOf = firstAnswerOf;
  }

  /** A repeated atomic gets the stored result; executing it again would be wrong. */
  #replayAtomic(packet: RocePacket): void {
    const record = this.#records.find(RECORD_ATOMIC, packet.psn);
    if (record === undefined) return;
    if (this.#recovery.replay === REPLAY_REWIND) this.#responses.rewindTo(packet.psn);
    else if (this.#responses.owes(packet.psn, packet.psn)) return;
    const job = this.#responses.append();
    if (job !== undefined) this.#fillAtomicJob(job, record, undefined);
  }

  // ---- the message in progress

  #beginMessage(kind: number, psn: number): void {
    this.#message = kind;
    this.#messageStart = psn;
    this.#receivedBytes = 0;
  }

  #endMessage(): void {
    this.#message = 0;
    this.#messageStart = NO_MESSAGE;
    this.#receivedBytes = 0;
  }

  #accept(packet: RocePacket): void {
    this.expectedPsn = psnAdd(packet.psn, 1);
    if (packet.ackReq && this.#due === DUE_NOTHING) this.#due = DUE_ACK;
  }

  #bindReceive(): boolean {
    return this.#recv.bound || this.#qp.receives.take(this.#recv);
  }

  /** Checks a remote key; a refusal is NAK 0x62. */
  #resolve(packet: RocePacket, lengthBytes: number, access: number, out: MemoryRange): boolean {
    const qp = this.#qp;
    const { keys } = qp.host;
    const verdict = keys.resolve(packet.rkey, qp.pd, qp.qpn, packet.vaHigh, packet.vaLow, lengthBytes, access, out);
    if (verdict === MEMORY_OK) return true;
    this.#fail(NAK_REMOTE_ACCESS, packet.psn, STATUS_REM_INV_REQ_ERR);
    return false;
  }

  /** No receive WQE: nothing changes here, the requester waits and sends this packet again. */
  #notReady(): void {
    this.#qp.host.counters[COUNTER.out_of_buffer]++;
    this.#due = DUE_RNR;
    this.#nakSent = true;
  }

  /** A request that cannot be executed: the NAK is the last thing this QP says. `receiveStatus` completes a bound receive WQE. */
  #fail(syndrome: number, psn: number, receiveStatus: number): void {
    this.#due = DUE_FATAL;
    this.#fatalSyndrome = syndrome;
    this.#fatalPsn = psn;
    this.#endMessage();
    if (this.#recv.bound) this.#completeReceive(receiveStatus, WC_RECV, 0, 0, 0);
    this.#qp.enterError(true);
  }

  /** Entering ERR: answers to what was executed still leave; a receive WQE in use is flushed. */
  flush(): void {
    this.#endMessage();
    if (this.#recv.bound) this.#completeReceive(STATUS_WR_FLUSH_ERR, WC_RECV, 0, 0, 0);
    if (this.#qp.receives.shared) return;
    while (this.#qp.receives.take(this.#recv)) this.#completeReceive(STATUS_WR_FLUSH_ERR, WC_RECV, 0, 0, 0);
  }

  /** Back to RESET: posted receives disappear without completions, except that an SRQ gets back the one in use. */
  discard(): void {
    if (this.#qp.receives.shared && this.#recv.bound) this.#completeReceive(STATUS_WR_FLUSH_ERR, WC_RECV, 0, 0, 0);
    this.reset();
    if (this.#qp.receives.shared) return;
    while (this.#qp.receives.take(this.#recv));
    this.#recv.bound = false;
  }

  /** Forgets answers that are owed: the QP was put into ERR by its owner. */
  silence(): void {
    this.#responses.clear();
    this.#due = DUE_NOTHING;
  }

  #completeReceive(status: number, opcode: number, flags: number, byteCount: number, immediate: number): void {
    if (status !== STATUS_SUCCESS) this.#qp.host.counters[COUNTER.resp_cqe_error]++;
    this.#recv.bound = false;
    const cqe = this.#cqe;
    cqe.index = this.#recv.cookie;
    cqe.qpn = this.#qp.qpn;
    cqe.status = status;
    cqe.opcode = opcode;
    cqe.flags = flags;
    cqe.isReceive = true;
    cqe.byteCount = byteCount;
    cqe.immediate = immediate;
    cqe.vendorError = 0;
    this.#qp.recvCq.complete(cqe);
  }

  // ---- answering

  /** Sends at most one packet into the batch. False: nothing is owed, or READ responses wait for the pacer and answers behind them. */
  emit(batch: TxBatch, now: number): boolean {
    const job = this.#responses.front;
    if (job !== undefined) {
      if (job.kind === RECORD_ATOMIC) this.#emitAtomicAck(job, batch);
      else if (this.#qp.congestion.pacer.opensNs > now) return this.#waitForPacer();
      else if (job.lengthBytes === 0 || job.range.stillValid) this.#emitReadResponse(job, batch, now);
      else {
        this.#responses.clear();
        this.#fail(NAK_REMOTE_ACCESS, job.cursorPsn, STATUS_REM_INV_REQ_ERR);
        return this.emit(batch, now);
      }
      return true;
    }
    if (this.#due === DUE_NOTHING) return false;
    this.#emitAcknowledge(batch);
    return true;
  }

  #waitForPacer(): false {
    this.#qp.probe.waits(WAIT_PACING);
    return false;
  }

  #emitReadResponse(job: ResponseJob, batch: TxBatch, now: number): void {
    const qp = this.#qp;
    const mtu = qp.mtuBytes;
    const psn = job.cursorPsn;
    const isFirst = psn === job.startPsn;
    const isLast = psn === job.lastPsn;
    const offset = ((psn - job.startPsn) & 0xffffff) * mtu;
    const bytes = Math.min(mtu, job.lengthBytes - offset);
    const pad = -bytes & 3;
    const opcode = isFirst
      ? isLast
        ? op.RC_READ_RESPONSE_ONLY
        : op.RC_READ_RESPONSE_FIRST
      : isLast
        ? op.RC_READ_RESPONSE_LAST
        : op.RC_READ_RESPONSE_MIDDLE;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, opcode, BTH_MIGREQ | (pad << BTH_PAD_SHIFT), qp.attributes.destQpn, false, psn);
    if (isFirst || isLast) o = writeAeth(b, o, SYNDROME_ACK, job.msn);
    if (bytes > 0) job.range.copyTo(offset, bytes, b, o);
    o += bytes;
    for (let p = 0; p < pad; p++) b[o++] = 0;
    qp.host.counters[TX_DATA_PACKETS]++;
    if (job.firstAnswerOf === undefined) qp.host.counters[COUNTER.tx_retransmitted]++;
    qp.path.seal(batch, o, qp.host.nextIpId(), qp.dataEcn);
    qp.dataSent(batch, now);
    if (isLast) this.#responses.popFront();
    else job.cursorPsn = psnAdd(psn, 1);
  }

  #emitAtomicAck(job: ResponseJob, batch: TxBatch): void {
    const qp = this.#qp;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, op.RC_ATOMIC_ACK, BTH_MIGREQ, qp.attributes.destQpn, false, job.startPsn);
    o = writeAeth(b, o, SYNDROME_ACK, job.msn);
    o = writeAtomicAckEth(b, o, job.origHigh, job.origLow);
    qp.path.seal(batch, o, qp.host.nextIpId());
    this.#responses.popFront();
  }

  /** One answer stands for everything before it: the newest PSN is acknowledged, however many packets asked. */
  #emitAcknowledge(batch: TxBatch): void {
    const qp = this.#qp;
    const { counters } = qp.host;
    let syndrome = SYNDROME_ACK;
    let psn = psnAdd(this.expectedPsn, -1);
    let bitmap =
      this.#due === DUE_ACK || this.#due === DUE_SEQUENCE_NAK ? this.#recovery.bitmapBytes(this.expectedPsn) : 0;
    if (bitmap > 0 || this.#due === DUE_SEQUENCE_NAK) {
      syndrome = NAK_PSN_SEQUENCE;
      psn = this.expectedPsn;
      counters[bitmap > 0 ? COUNTER.sack_sent : COUNTER.resp_nak_sequence]++;
    } else if (this.#due === DUE_RNR) {
      syndrome = SYNDROME_RNR | (qp.attributes.minRnrTimer & 0x1f);
      psn = this.expectedPsn;
    } else if (this.#due === DUE_FATAL) {
      syndrome = this.#fatalSyndrome;
      psn = this.#fatalPsn;
      counters[COUNTER.resp_nak_fatal]++;
    }
    this.#due = DUE_NOTHING;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    const opcode = bitmap > 0 ? op.VENDOR_SACK : op.RC_ACK;
    o = writeBth(b, o, opcode, BTH_MIGREQ, qp.attributes.destQpn, false, psn);
    o = writeAeth(b, o, syndrome, this.msn);
    if (bitmap > 0) {
      bitmap = Math.min(bitmap, 128);
      this.#recovery.writeBitmap(this.expectedPsn, b, o, bitmap);
      o += bitmap;
    }
    counters[COUNTER.tx_ack_packets]++;
    qp.path.seal(batch, o, qp.host.nextIpId());
  }
}

/** A repeated READ may ask for any part of the original, with the same key. */
function liesInside(packet: RocePacket, record: ResponderRecord): boolean {
  if (packet.rkey !== record.rkey) return false;
  const offset = (packet.vaHigh - record.vaHigh) * 0x1_0000_0000 + (packet.vaLow - record.vaLow);
  return offset >= 0 && offset <= record.lengthBytes && packet.dmaLength <= record.lengthBytes - offset;
}

function readLittleEndian(b: Uint8Array, o: number): number {
  return (b[o] | (b[o + 1] << 8) | (b[o + 2] << 16) | (b[o + 3] << 24)) >>> 0;
}

function writeLittleEndian(b: Uint8Array, o: number, value: number): void {
  b[o] = value;
  b[o + 1] = value >>> 8;
  b[o + 2] = value >>> 16;
  b[o + 3] = value >>> 24;
}

/** Operands are numbers of the wire; memory holds a little-endian u64, as on every host that Node runs on. */
function applyAtomic(packet: RocePacket, record: ResponderRecord, range: MemoryRange): void {
  if (packet.opcode === op.RC_FETCH_ADD) {
    const low = record.origLow + packet.swapLow;
    const carry = low > 0xffffffff ? 1 : 0;
    writeLittleEndian(range.bytes, range.offset, low >>> 0);
    writeLittleEndian(range.bytes, range.offset + 4, (record.origHigh + packet.swapHigh + carry) >>> 0);
  } else if (record.origHigh === packet.compareHigh && record.origLow === packet.compareLow) {
    writeLittleEndian(range.bytes, range.offset, packet.swapLow);
    writeLittleEndian(range.bytes, range.offset + 4, packet.swapHigh);
  }
}
