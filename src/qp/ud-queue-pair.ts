/**
 * Unreliable datagram queue pairs, and QP1 (GSI), which is one with a fixed number: what connection management needs (IBTA vol. 1 §9.8.3).
 * One packet a message, no acknowledgement. A message that finds no receive WQE or has the wrong Q_Key is dropped; one that does not fit its
 * receive WQE completes it with LOC_LEN_ERR, and the QP goes on.
 */

import { SgeCursor } from '../memory/sge-cursor.js';
import { HDR_IMM, UD_SEND_ONLY, UD_SEND_ONLY_IMM } from '../packet/opcode.js';
import { PSN_MASK } from '../packet/psn.js';
import {
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  BTH_SOLICITED,
  type RocePacket,
  writeBth,
  writeDeth,
  writeImm,
} from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { QpAttributes } from '../ring/commands.js';
import { Cqe } from '../ring/completion-ring.js';
import { COUNTER } from '../ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  EVENT_QP_FATAL,
  EVENT_SQ_DRAINED,
  QPS_ERR,
  QPS_RESET,
  QPS_RTR,
  QPS_RTS,
  QPS_SQD,
  QPT_UD,
  SEND_INLINE,
  SEND_SIGNALED,
  SEND_SOLICITED,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_LOC_QP_OP_ERR,
  STATUS_SUCCESS,
  STATUS_WR_FLUSH_ERR,
  WC_FLAG_GRH,
  WC_FLAG_SOLICITED,
  WC_FLAG_WITH_IMM,
  WC_RECV,
  WR_SEND,
  WR_SEND_WITH_IMM,
  wcOpcodeOf,
} from '../ring/enums.js';
import { RecvWqe, type SendQueue, SendWqe } from '../ring/work-queue.js';
import type { CompletionSink, QpHost, ReceiveSource, Schedulable } from './host.js';
import type { Path } from './path.js';
import type { QueuePairOptions } from './rc-queue-pair.js';
import { checkTransition } from './state.js';

/** Every UD receive buffer begins with the GRH, or with the IPv4 header right-aligned in its place. */
export const GRH_BYTES = 40;

export interface UdEnvironment {
  /** The path of an address handle; undefined when it does not exist or belongs to another PD. */
  pathOf(ah: number, pd: number): Path | undefined;
  /** Bytes one UD message may have. */
  readonly mtuBytes: number;
}

export class UdQueuePair implements Schedulable {
  readonly type: number;
  readonly qpn: number;
  readonly pd: number;
  readonly attributes: QpAttributes;
  scheduled = false;
  readonly deadlineNs = Number.POSITIVE_INFINITY;
  readonly #host: QpHost;
  readonly #environment: UdEnvironment;
  readonly sendCq: CompletionSink;
  readonly recvCq: CompletionSink;
  readonly receives: ReceiveSource;
  readonly #sq: SendQueue;
  readonly #signalAll: boolean;
  #psn = 0;
  readonly #wqe = new SendWqe();
  readonly #source = new SgeCursor();
  readonly #recv = new RecvWqe();
  readonly #sink = new SgeCursor();
  readonly #grh = new Uint8Array(GRH_BYTES);
  readonly #cqe = new Cqe();

  constructor(options: QueuePairOptions, type: number, environment: UdEnvironment) {
    this.type = type;
    this.qpn = options.qpn;
    this.pd = options.pd;
    this.attributes = options.attributes;
    this.#host = options.host;
    this.#environment = environment;
    this.sendCq = options.sendCq;
    this.recvCq = options.recvCq;
    this.receives = options.receives;
    this.#sq = options.sendQueue;
    this.#signalAll = options.signalAll;
  }

  modify(mask: number, values: QpAttributes, apply: () => void): void {
    const from = this.attributes.state;
    checkTransition(QPT_UD, from, values.state, mask);
    apply();
    this.attributes.state = values.state;
    if (values.state === QPS_RTS && from === QPS_RTR) this.#psn = values.sqPsn;
    // A message is done when it is sent: nothing that was begun is left.
    if (values.state === QPS_SQD && from === QPS_RTS) this.#host.raise(EVENT_SQ_DRAINED, this.qpn);
    if (values.state === QPS_ERR) this.#flush();
    else if (values.state === QPS_RESET) this.#discard();
    this.#host.schedule(this);
  }

  /** DSCP of the next packet; 0 when there is none to send. */
  get nextDscp(): number {
    const index = this.#sq.consumer;
    if (index === this.#sq.producer) return 0;
    this.#sq.read(index, this.#wqe);
    return this.#environment.pathOf(this.#wqe.ah, this.pd)?.dscp ?? 0;
  }

  get nextPsns(): { sqPsn: number; rqPsn: number } {
    return { sqPsn: this.#psn, rqPsn: 0 };
  }

  enterError(): void {
    this.attributes.state = QPS_ERR;
    this.#flush();
    this.#host.raise(EVENT_QP_FATAL, this.qpn);
  }

  #flush(): void {
    for (let index = this.#sq.consumer; index !== this.#sq.producer; index = this.#sq.consumer) {
      this.#completeSend(index, STATUS_WR_FLUSH_ERR);
    }
    if (this.receives.shared) return;
    while (this.receives.take(this.#recv)) this.#completeReceive(STATUS_WR_FLUSH_ERR, 0, 0, 0, 0);
  }

  doorbell(): void {
    if (this.attributes.state === QPS_ERR) this.#flush();
    else this.#host.schedule(this);
  }

  /** Back to RESET: what is posted disappears without completions. */
  #discard(): void {
    this.#sq.consumer = this.#sq.producer;
    if (this.receives.shared) return;
    while (this.receives.take(this.#recv));
    this.#recv.bound = false;
  }

  destroy(): void {
    this.attributes.state = QPS_RESET;
    this.#discard();
  }

  onDeadline(): void {}

  accepts(): boolean {
    const { state } = this.attributes;
    return state === QPS_RTR || state === QPS_RTS || state === QPS_SQD;
  }

  emit(batch: TxBatch): boolean {
    if (this.attributes.state !== QPS_RTS) return false;
    const index = this.#sq.consumer;
    if (index === this.#sq.producer) return false;
    this.#sq.read(index, this.#wqe);
    const status = this.#emitMessage(batch);
    this.#completeSend(index, status);
    if (status !== STATUS_SUCCESS) this.enterError();
    return true;
  }

  #emitMessage(batch: TxBatch): number {
    const wqe = this.#wqe;
    if (wqe.opcode !== WR_SEND && wqe.opcode !== WR_SEND_WITH_IMM) return STATUS_LOC_QP_OP_ERR;
    const path = this.#environment.pathOf(wqe.ah, this.pd);
    if (path === undefined) return STATUS_LOC_QP_OP_ERR;
    if (wqe.messageBytes > this.#environment.mtuBytes) return STATUS_LOC_LEN_ERR;
    if ((wqe.flags & SEND_INLINE) !== 0) this.#source.loadPlain(this.#sq.bytes, wqe.inlineOffset, wqe.messageBytes);
    else if (!this.#source.load(wqe.sges, this.#host.keys, this.pd, 0)) return STATUS_LOC_PROT_ERR;
    const pad = -wqe.messageBytes & 3;
    const solicited = (wqe.flags & SEND_SOLICITED) !== 0 ? BTH_SOLICITED : 0;
    const withImmediate = wqe.opcode === WR_SEND_WITH_IMM;
    const opcode = withImmediate ? UD_SEND_ONLY_IMM : UD_SEND_ONLY;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, opcode, solicited | BTH_MIGREQ | (pad << BTH_PAD_SHIFT), wqe.remoteQpn, false, this.#psn);
    o = writeDeth(b, o, wqe.qkey, this.qpn);
    if (withImmediate) o = writeImm(b, o, wqe.immediate);
    this.#source.gather(0, wqe.messageBytes, b, o);
    o += wqe.messageBytes;
    for (let p = 0; p < pad; p++) b[o++] = 0;
    this.#psn = (this.#psn + 1) & PSN_MASK;
    path.seal(batch, o, this.#host.nextIpId());
    return STATUS_SUCCESS;
  }

  receive(packet: RocePacket, datagram: RxDatagram): void {
    if (!this.receives.take(this.#recv)) {
      this.#host.counters[COUNTER.out_of_buffer]++;
      return;
    }
    const { keys } = this.#host;
    const total = GRH_BYTES + packet.payloadBytes;
    if (!this.#sink.load(this.#recv.sges, keys, this.pd, ACCESS_LOCAL_WRITE)) {
      this.#completeReceive(STATUS_LOC_PROT_ERR, 0, 0, 0, 0);
      return;
    }
    if (total > this.#sink.totalBytes) {
      this.#completeReceive(STATUS_LOC_LEN_ERR, 0, 0, 0, 0);
      return;
    }
    writeGrh(this.#grh, datagram);
    this.#sink.scatter(0, GRH_BYTES, this.#grh, 0);
    this.#sink.scatter(GRH_BYTES, packet.payloadBytes, datagram.bytes, packet.payloadOffset);
    const withImmediate = (packet.info.headers & HDR_IMM) !== 0;
    const flags = WC_FLAG_GRH | (withImmediate ? WC_FLAG_WITH_IMM : 0) | (packet.solicited ? WC_FLAG_SOLICITED : 0);
    this.#completeReceive(STATUS_SUCCESS, flags, total, withImmediate ? packet.immediate : 0, packet.sourceQpn);
  }

  #completeSend(index: number, status: number): void {
    this.#sq.consumer = (index + 1) >>> 0;
    if (status === STATUS_SUCCESS && !this.#signalAll && (this.#sq.flagsAt(index) & SEND_SIGNALED) === 0) return;
    if (status !== STATUS_SUCCESS) this.#host.counters[COUNTER.req_cqe_error]++;
    const cqe = this.#cqe;
    cqe.index = index;
    cqe.qpn = this.qpn;
    cqe.status = status;
    cqe.opcode = wcOpcodeOf(this.#sq.opcodeAt(index));
    cqe.flags = 0;
    cqe.isReceive = false;
    cqe.byteCount = this.#sq.messageBytesAt(index);
    cqe.immediate = 0;
    cqe.sourceQpn = 0;
    this.sendCq.complete(cqe);
  }

  #completeReceive(status: number, flags: number, byteCount: number, immediate: number, sourceQpn: number): void {
    if (status !== STATUS_SUCCESS) this.#host.counters[COUNTER.resp_cqe_error]++;
    const cqe = this.#cqe;
    cqe.index = this.#recv.cookie;
    cqe.qpn = this.qpn;
    cqe.status = status;
    cqe.opcode = WC_RECV;
    cqe.flags = flags;
    cqe.isReceive = true;
    cqe.byteCount = byteCount;
    cqe.immediate = immediate;
    cqe.sourceQpn = sourceQpn;
    this.#recv.bound = false;
    this.recvCq.complete(cqe);
  }
}

/** The IP header of the datagram as far as it is known, in the 40 bytes that verbs give to it: IPv6 as is, IPv4 in the last 20. */
function writeGrh(grh: Uint8Array, datagram: RxDatagram): void {
  grh.fill(0);
  const { source, destination } = datagram;
  const trafficClass = (datagram.dscp << 2) | datagram.ecn;
  const udpBytes = datagram.length + 8;
  if (source.family === 6) {
    grh[0] = 0x60 | (trafficClass >> 4);
    grh[1] = trafficClass << 4;
    grh[4] = udpBytes >> 8;
    grh[5] = udpBytes;
    grh[6] = 17;
    grh[7] = 64;
    grh.set(source.bytes, 8);
    grh.set(destination.bytes, 24);
    return;
  }
  grh[20] = 0x45;
  grh[21] = trafficClass;
  grh[22] = (udpBytes + 20) >> 8;
  grh[23] = udpBytes + 20;
  grh[26] = 0x40;
  grh[28] = 64;
  grh[29] = 17;
  grh.set(source.bytes, 32);
  grh.set(destination.bytes, 36);
}
