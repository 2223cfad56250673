/**
 * READs, atomics, FLUSH and ATOMIC WRITE as responder (IBTA vol. 1 §9.7.4.2, §9.7.4.3, §9.7.5.1.2, annex A19):
 * executes each once, keeps a record of it, and sends the answers in request order. A repeated request is answered
 * again from its record.
 */

import { MEMORY_OK } from '../memory/key-table.js';
import { MemoryRange } from '../memory/memory-range.js';
import { COUNTER } from '../memory/ring/counters.js';
import {
  ACCESS_FLUSH_GLOBAL,
  ACCESS_FLUSH_PERSISTENT,
  ACCESS_REMOTE_ATOMIC,
  ACCESS_REMOTE_READ,
  ACCESS_REMOTE_WRITE,
} from '../memory/ring/enums.js';
import { WAIT_PACING } from '../memory/ring/telemetry-page.js';
import { MESSAGE_BYTES_MAX } from '../memory/ring/work-queue.js';
import { NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS, SYNDROME_ACK } from '../packet/aeth.js';
import * as op from '../packet/opcode.js';
import { psnAdd, psnDiff, psnOffset } from '../packet/psn.js';
import {
  ATOMIC_BYTES,
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  FETH_GLOBAL,
  FETH_PERSISTENT,
  isFethDefined,
  type RocePacket,
  selectsRegion,
  writeAeth,
  writeAtomicAckEth,
  writeBth,
} from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import { REPLAY_REWIND, type ReceiverRecovery } from '../retransmit/recovery.js';
import { executeAtomic, placeAtomically, readHostU64 } from './atomic.js';
import { borrowPayload } from './borrowed-payload.js';
import { resolveRemote } from './reassembler.js';
import {
  RECORD_ATOMIC,
  RECORD_PLACEMENT,
  RECORD_READ,
  type ResponderRecord,
  ResponderRecords,
  type ResponseJob,
  ResponseQueue,
} from './response-queue.js';
import type { QueuePairParts } from './transport.js';

const TX_DATA_PACKETS = COUNTER.tx_data_packets;

/** {@link ReadResponder.execute}: the request cannot be executed, see `refusedSyndrome`. */
export const REQUEST_REFUSED = -1;

const EMIT_NOTHING = 0;
export const EMIT_SENT = 1;
/** {@link ReadResponder.emit}: the memory of the oldest answer is no longer accessible, see `lostPsn`. */
export const EMIT_LOST_MEMORY = 2;

export class ReadResponder {
  readonly #parts: QueuePairParts;
  #recovery: ReceiverRecovery;
  #records = new ResponderRecords(0);
  #responses = new ResponseQueue(0, 0);
  readonly #range = new MemoryRange();
  readonly #original = { origHigh: 0, origLow: 0 };
  refusedSyndrome = 0;
  lostPsn = 0;

  constructor(parts: QueuePairParts, recovery: ReceiverRecovery) {
    this.#parts = parts;
    this.#recovery = recovery;
  }

  start(recovery: ReceiverRecovery): void {
    const { maxDestRdAtomic } = this.#parts.attributes;
    this.#recovery = recovery;
    this.#records = new ResponderRecords(maxDestRdAtomic);
    this.#responses = new ResponseQueue(maxDestRdAtomic, recovery.replaysMax);
  }

  resize(): void {
    const { maxDestRdAtomic } = this.#parts.attributes;
    this.#records.resize(maxDestRdAtomic);
    this.#responses.resize(maxDestRdAtomic);
  }

  clear(): void {
    this.#responses.clear();
  }

  get isPending(): boolean {
    return this.#responses.count > 0;
  }

  /**
   * Returns the PSNs it takes; 0 when it has to be dropped, because repeated requests fill the queue of answers;
   * REQUEST_REFUSED.
   */
  execute(packet: RocePacket, bytes: Uint8Array, msn: number): number {
    switch (packet.info.kind) {
      case op.OP_READ_REQUEST:
        return this.#executeRead(packet, msn);
      case op.OP_ATOMIC:
        return this.#executeAtomic(packet, msn);
      case op.OP_FLUSH:
        return this.#executeFlush(packet, msn);
      default:
        return this.#executeAtomicWrite(packet, bytes, msn);
    }
  }

  /** Returns the expected PSN after it: another one only where READs are executed again. */
  replay(packet: RocePacket, expectedPsn: number, msn: number): number {
    const { kind } = packet.info;
    if (kind === op.OP_READ_REQUEST) return this.#replayRead(packet, expectedPsn, msn);
    if (kind === op.OP_ATOMIC) this.#replayAtomic(packet, msn);
    else this.#replayPlacement(packet, msn);
    return expectedPsn;
  }

  #refuse(syndrome: number): number {
    this.refusedSyndrome = syndrome;
    return REQUEST_REFUSED;
  }

  #mayExecute(access: number, record: ResponderRecord | undefined): record is ResponderRecord {
    const allowed = (this.#parts.attributes.accessFlags & access) === access;
    // While the first answer of the oldest record is pending, the peer has more outstanding than was agreed.
    return allowed && record !== undefined && !this.#responses.hasFirstAnswerOf(record);
  }

  #executeRead(packet: RocePacket, msn: number): number {
    const parts = this.#parts;
    const lengthBytes = packet.dmaLength;
    if (!this.#mayExecute(ACCESS_REMOTE_READ, this.#records.oldest) || lengthBytes > MESSAGE_BYTES_MAX) {
      return this.#refuse(NAK_INVALID_REQUEST);
    }
    if (lengthBytes > 0 && !resolveRemote(parts, packet, lengthBytes, ACCESS_REMOTE_READ, this.#range)) {
      return this.#refuse(NAK_REMOTE_ACCESS);
    }
    const job = this.#responses.append();
    if (job === undefined) return 0;
    const record = this.#records.take();
    const psns = this.#fillReadJob(job, packet, lengthBytes, msn);
    record.kind = RECORD_READ;
    record.firstPsn = packet.psn;
    record.lastPsn = job.lastPsn;
    record.rkey = packet.rkey;
    record.vaHigh = packet.vaHigh;
    record.vaLow = packet.vaLow;
    record.lengthBytes = lengthBytes;
    job.firstAnswerOf = record;
    parts.host.counters[COUNTER.rx_read_requests]++;
    return psns;
  }

  #responsePackets(lengthBytes: number): number {
    return Math.max(1, Math.ceil(lengthBytes / this.#parts.link.mtuBytes));
  }

  /** Returns the PSNs of the answer. */
  #fillReadJob(job: ResponseJob, packet: RocePacket, lengthBytes: number, msn: number): number {
    const psns = this.#responsePackets(lengthBytes);
    job.kind = RECORD_READ;
    job.range.copyFrom(this.#range);
    job.startPsn = packet.psn;
    job.cursorPsn = packet.psn;
    job.lastPsn = psnAdd(packet.psn, psns - 1);
    job.msn = msn;
    job.lengthBytes = lengthBytes;
    job.firstAnswerOf = undefined;
    return psns;
  }

  #replayRead(packet: RocePacket, expectedPsn: number, msn: number): number {
    const lastPsn = psnAdd(packet.psn, this.#responsePackets(packet.dmaLength) - 1);
    if (packet.dmaLength > MESSAGE_BYTES_MAX) return expectedPsn;
    if (!this.#recovery.restartsReads) {
      // Never beyond what was executed: the expected PSN already counts the whole original request.
      if (psnDiff(lastPsn, expectedPsn) >= 0) return expectedPsn;
      const record = this.#records.find(RECORD_READ, packet.psn);
      if (record === undefined || !liesInside(packet, record)) return expectedPsn;
    }
    if (
      packet.dmaLength > 0 &&
      !resolveRemote(this.#parts, packet, packet.dmaLength, ACCESS_REMOTE_READ, this.#range)
    ) {
      this.#refuse(NAK_REMOTE_ACCESS);
      return REQUEST_REFUSED;
    }
    const reached = this.#responses.front?.cursorPsn ?? expectedPsn;
    const job = this.#repeatedAnswer(packet.psn, lastPsn);
    if (job === undefined) return expectedPsn;
    if (this.#recovery.replay === REPLAY_REWIND) this.#countRewind(packet.psn, reached);
    this.#fillReadJob(job, packet, packet.dmaLength, msn);
    return psnDiff(lastPsn, expectedPsn) < 0 ? expectedPsn : psnAdd(lastPsn, 1);
  }

  /** A job for the answer to a repeated request; undefined when it is still to be sent, or no more can wait. */
  #repeatedAnswer(first: number, last: number): ResponseJob | undefined {
    const responses = this.#responses;
    if (this.#recovery.replay === REPLAY_REWIND) return responses.insert(first, last);
    return responses.covers(first, last) ? undefined : responses.append();
  }

  /** The requester went back to `psn` after answers up to `reached` were sent; those after `psn` were wasted. */
  #countRewind(psn: number, reached: number): void {
    const { counters } = this.#parts.host;
    const beyond = psnDiff(reached, psn) - 1;
    // A READ in several requests is repeated in several, and only the first of them goes back.
    if (beyond >= 0) {
      counters[COUNTER.retry_rewinds]++;
      counters[COUNTER.retry_rewind_packets] += beyond;
    }
  }

  #executeAtomic(packet: RocePacket, msn: number): number {
    const parts = this.#parts;
    if (!this.#mayExecute(ACCESS_REMOTE_ATOMIC, this.#records.oldest) || (packet.vaLow & (ATOMIC_BYTES - 1)) !== 0) {
      return this.#refuse(NAK_INVALID_REQUEST);
    }
    const range = this.#range;
    if (!resolveRemote(parts, packet, ATOMIC_BYTES, ACCESS_REMOTE_ATOMIC, range))
      return this.#refuse(NAK_REMOTE_ACCESS);
    const original = this.#original;
    readHostU64(range, original);
    if (!range.stillValid) return this.#refuse(NAK_REMOTE_ACCESS);
    const job = this.#responses.append();
    if (job === undefined) return 0;
    const record = this.#records.take();
    record.kind = RECORD_ATOMIC;
    record.origHigh = original.origHigh;
    record.origLow = original.origLow;
    record.firstPsn = packet.psn;
    record.lastPsn = packet.psn;
    executeAtomic(packet, range, record);
    this.#fillAtomicJob(job, record, msn);
    job.firstAnswerOf = record;
    parts.host.counters[COUNTER.rx_atomic_requests]++;
    return 1;
  }

  #fillAtomicJob(job: ResponseJob, record: ResponderRecord, msn: number): void {
    job.kind = RECORD_ATOMIC;
    job.startPsn = record.firstPsn;
    job.cursorPsn = record.firstPsn;
    job.lastPsn = record.firstPsn;
    job.msn = msn;
    job.origHigh = record.origHigh;
    job.origLow = record.origLow;
    job.firstAnswerOf = undefined;
  }

  /** A repeated atomic gets the stored result; executing it again would be wrong. */
  #replayAtomic(packet: RocePacket, msn: number): void {
    const record = this.#records.find(RECORD_ATOMIC, packet.psn);
    if (record === undefined) return;
    const job = this.#repeatedAnswer(packet.psn, packet.psn);
    if (job !== undefined) this.#fillAtomicJob(job, record, msn);
  }

  /** What earlier requests wrote is in memory, where everybody sees it: only the rights are to be checked. */
  #executeFlush(packet: RocePacket, msn: number): number {
    const { feth, dmaLength } = packet;
    const access = accessOfFlush(feth);
    const isDefined = isFethDefined(feth) && dmaLength <= MESSAGE_BYTES_MAX;
    if (!isDefined || !this.#mayExecute(access, this.#records.oldest)) return this.#refuse(NAK_INVALID_REQUEST);
    if (!this.#resolveFlush(packet, access)) return this.#refuse(NAK_REMOTE_ACCESS);
    if (this.#responses.isFull) return 0;
    this.#answerPlacement(packet, msn);
    return 1;
  }

  #resolveFlush(packet: RocePacket, access: number): boolean {
    const { host, pd, qpn } = this.#parts;
    if (selectsRegion(packet.feth)) {
      return host.keys.resolveWhole(packet.rkey, pd, qpn, access, this.#range) === MEMORY_OK;
    }
    return resolveRemote(this.#parts, packet, packet.dmaLength, access, this.#range);
  }

  #executeAtomicWrite(packet: RocePacket, bytes: Uint8Array, msn: number): number {
    const parts = this.#parts;
    const isWhole = packet.payloadBytes === ATOMIC_BYTES && packet.dmaLength === ATOMIC_BYTES;
    const isAligned = (packet.vaLow & (ATOMIC_BYTES - 1)) === 0;
    if (!isWhole || !isAligned || !this.#mayExecute(ACCESS_REMOTE_WRITE, this.#records.oldest)) {
      return this.#refuse(NAK_INVALID_REQUEST);
    }
    const range = this.#range;
    if (!resolveRemote(parts, packet, ATOMIC_BYTES, ACCESS_REMOTE_WRITE, range)) return this.#refuse(NAK_REMOTE_ACCESS);
    if (this.#responses.isFull) return 0;
    if (parts.host.carriesPayload) placeAtomically(range, bytes, packet.payloadOffset);
    if (!range.stillValid) return this.#refuse(NAK_REMOTE_ACCESS);
    this.#answerPlacement(packet, msn);
    parts.host.counters[COUNTER.rx_write_requests]++;
    return 1;
  }

  #answerPlacement(packet: RocePacket, msn: number): void {
    const job = this.#responses.append()!;
    const record = this.#records.take();
    record.kind = RECORD_PLACEMENT;
    record.firstPsn = packet.psn;
    record.lastPsn = packet.psn;
    this.#fillReadJob(job, packet, 0, msn);
    job.firstAnswerOf = record;
  }

  /** It is answered again, and not executed again: a later request may have written the same memory. */
  #replayPlacement(packet: RocePacket, msn: number): void {
    if (this.#records.find(RECORD_PLACEMENT, packet.psn) === undefined) return;
    const job = this.#repeatedAnswer(packet.psn, packet.psn);
    if (job !== undefined) this.#fillReadJob(job, packet, 0, msn);
  }

  emit(batch: TxBatch, now: number): number {
    const job = this.#responses.front;
    if (job === undefined) return EMIT_NOTHING;
    if (job.kind === RECORD_ATOMIC) this.#emitAtomicAck(job, batch);
    else if (this.#parts.congestion.control.pacer.opensNs > now) {
      this.#parts.probe.current.waits(WAIT_PACING);
      return EMIT_NOTHING;
    } else if (!(job.lengthBytes === 0 || job.range.stillValid) || !this.#emitReadResponse(job, batch, now)) {
      this.lostPsn = job.cursorPsn;
      this.#responses.clear();
      return EMIT_LOST_MEMORY;
    }
    return EMIT_SENT;
  }

  /** False: the memory cannot be read. */
  #emitReadResponse(job: ResponseJob, batch: TxBatch, now: number): boolean {
    const { host, attributes, link, congestion } = this.#parts;
    const { mtuBytes } = link;
    const psn = job.cursorPsn;
    const isFirst = psn === job.startPsn;
    const isLast = psn === job.lastPsn;
    const offset = psnOffset(psn, job.startPsn) * mtuBytes;
    const bytes = Math.min(mtuBytes, job.lengthBytes - offset);
    const pad = -bytes & 3;
    const b = batch.slab;
    const start = batch.payloadOffset(batch.count);
    const flags = BTH_MIGREQ | (pad << BTH_PAD_SHIFT);
    let o = writeBth(b, start, responseOpcode(isFirst, isLast), flags, attributes.destQpn, false, psn);
    if (isFirst || isLast) o = writeAeth(b, o, SYNDROME_ACK, job.msn);
    const hasPayload = bytes > 0 && host.carriesPayload;
    const { range } = job;
    const isBorrowed = hasPayload && range.isOfThisThread && borrowPayload(batch, range, offset, bytes, o - start);
    if (hasPayload && !isBorrowed) {
      range.copyTo(offset, bytes, b, o);
      if (!range.stillValid) return false;
    }
    o += bytes;
    for (let p = 0; p < pad; p++) b[o++] = 0;
    host.counters[TX_DATA_PACKETS]++;
    if (job.firstAnswerOf === undefined) host.counters[COUNTER.tx_retransmitted]++;
    link.seal(batch, o, congestion.dataEcn);
    congestion.dataSent(batch, now);
    if (isLast) this.#responses.popFront();
    else job.cursorPsn = psnAdd(psn, 1);
    return true;
  }

  #emitAtomicAck(job: ResponseJob, batch: TxBatch): void {
    const { attributes, link } = this.#parts;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, op.RC_ATOMIC_ACK, BTH_MIGREQ, attributes.destQpn, false, job.startPsn);
    o = writeAeth(b, o, SYNDROME_ACK, job.msn);
    o = writeAtomicAckEth(b, o, job.origHigh, job.origLow);
    link.seal(batch, o);
    this.#responses.popFront();
  }
}

function responseOpcode(isFirst: boolean, isLast: boolean): number {
  if (isFirst) return isLast ? op.RC_READ_RESPONSE_ONLY : op.RC_READ_RESPONSE_FIRST;
  return isLast ? op.RC_READ_RESPONSE_LAST : op.RC_READ_RESPONSE_MIDDLE;
}

/** Access flags that a FLUSH with this FETH needs. */
function accessOfFlush(feth: number): number {
  return (
    ((feth & FETH_GLOBAL) === 0 ? 0 : ACCESS_FLUSH_GLOBAL) |
    ((feth & FETH_PERSISTENT) === 0 ? 0 : ACCESS_FLUSH_PERSISTENT)
  );
}

/** A repeated READ may ask for any part of the original, with the same key. */
function liesInside(packet: RocePacket, record: ResponderRecord): boolean {
  if (packet.rkey !== record.rkey) return false;
  const offset = (packet.vaHigh - record.vaHigh) * 0x1_0000_0000 + (packet.vaLow - record.vaLow);
  return offset >= 0 && offset <= record.lengthBytes && packet.dmaLength <= record.lengthBytes - offset;
}
