/**
 * Unreliable datagram queue pairs, and QP1 (GSI), which is one with a fixed number: what connection management needs
 * (IBTA vol. 1 §9.8.3). One packet per message, no acknowledgement. A message that finds no receive WQE or has the
 * wrong Q_Key is dropped; one that does not fit its receive WQE completes it with LOC_LEN_ERR, and the QP continues.
 */

import { RoceError } from '../core/errors.js';
import { ConstantRate } from '../dcqcn/constant-rate.js';
import type { RateControl } from '../dcqcn/rate-control.js';
import type { QpAttributes } from '../memory/ring/commands.js';
import { COUNTER } from '../memory/ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  EVENT_QP_FATAL,
  EVENT_SQ_DRAINED,
  QPS_ERR,
  QPS_RESET,
  QPS_RTR,
  QPS_RTS,
  QPS_SQD,
  QPS_SQE,
  SEND_INLINE,
  SEND_SOLICITED,
  SOURCE_PORT_ANY,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_LOC_QP_OP_ERR,
  STATUS_SUCCESS,
  WC_FLAG_GRH,
  WC_FLAG_SOLICITED,
  WC_FLAG_WITH_IMM,
  WC_RECV,
  WR_SEND,
  WR_SEND_WITH_IMM,
} from '../memory/ring/enums.js';
import { SendWqe } from '../memory/ring/work-queue.js';
import { SgeCursor } from '../memory/sge-cursor.js';
import type { IcrcFlow } from '../packet/icrc.js';
import { HDR_IMM, UD_SEND_ONLY, UD_SEND_ONLY_IMM } from '../packet/opcode.js';
import { psnAdd } from '../packet/psn.js';
import {
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  BTH_SOLICITED,
  GRH_BYTES,
  type RocePacket,
  writeBth,
  writeDeth,
  writeImm,
} from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import { applyAttributes, asksForDrained, checkRanges, initialAttributes } from './attributes.js';
import type { QpHost } from './host.js';
import type { NextPsns, NicQueuePair, PeerAddressing, QpProgress, QueuePairOptions } from './nic-queue-pair.js';
import { ReceiveCompletions } from './receive-completions.js';
import { SendCompletions } from './send-completions.js';
import { checkTransition } from './state.js';
import { UD_TRANSITIONS } from './transitions.js';

const UNLIMITED: RateControl = new ConstantRate({ rateBps: Number.POSITIVE_INFINITY });

/** Datagrams come from everywhere. */
class AnyPeer implements PeerAddressing {
  readonly sourcePort = 0;
  readonly remoteSourcePort = SOURCE_PORT_ANY;
  readonly #host: QpHost;

  constructor(host: QpHost) {
    this.#host = host;
  }

  matchesAddresses(): boolean {
    return true;
  }

  matchesSourcePort(): boolean {
    return true;
  }

  receiveFlow(datagram: RxDatagram): IcrcFlow {
    return this.#host.datagramFlow(datagram);
  }
}

export class UdQueuePair implements NicQueuePair {
  readonly qpn: number;
  readonly attributes: QpAttributes;
  readonly rate = UNLIMITED;
  readonly peer: AnyPeer;
  readonly isDraining = false;
  scheduled = false;
  readonly deadlineNs = Number.POSITIVE_INFINITY;
  readonly #options: QueuePairOptions;
  readonly #sends: SendCompletions;
  readonly #receives: ReceiveCompletions;
  #psn = 0;
  readonly #wqe = new SendWqe();
  readonly #source = new SgeCursor();
  readonly #sink = new SgeCursor();
  readonly #grh = new Uint8Array(GRH_BYTES);

  constructor(options: QueuePairOptions) {
    this.qpn = options.qpn;
    this.attributes = options.attributes;
    this.#options = options;
    this.peer = new AnyPeer(options.host);
    this.#sends = new SendCompletions(options);
    this.#receives = new ReceiveCompletions(options);
  }

  modify(mask: number, values: QpAttributes): void {
    checkRanges(values, mask, this.#options.host.pathMtuMax);
    const from = this.attributes.state;
    checkTransition(UD_TRANSITIONS, from, values.state, mask);
    applyAttributes(this.attributes, values, mask);
    this.attributes.state = values.state;
    if (values.state === QPS_RTS && from === QPS_RTR) this.#psn = values.sqPsn;
    // A message is done when it is sent: no work in progress is left.
    const hasDrained = values.state === QPS_SQD && from === QPS_RTS;
    if (hasDrained && asksForDrained(values, mask)) this.#options.host.raise(EVENT_SQ_DRAINED, this.qpn);
    if (values.state === QPS_ERR) this.#flush();
    else if (values.state === QPS_RESET) this.#discard();
    this.#options.host.schedule(this);
  }

  get nextDscp(): number {
    const index = this.#options.sendQueue.consumer;
    if (!this.#options.sendQueue.isPublished(index)) return 0;
    this.#options.sendQueue.read(index, this.#wqe);
    return this.#options.host.pathOf(this.#wqe.ah, this.#options.pd)?.dscp ?? 0;
  }

  get nextPsns(): NextPsns {
    return { sqPsn: this.#psn, rqPsn: 0 };
  }

  enterError(): void {
    this.attributes.state = QPS_ERR;
    this.#flush();
    this.#options.host.raise(EVENT_QP_FATAL, this.qpn);
  }

  #flush(): void {
    this.#sends.flush();
    this.#receives.flush();
  }

  doorbell(): void {
    const { state } = this.attributes;
    if (state === QPS_ERR) this.#flush();
    else if (state === QPS_SQE) this.#sends.flush();
    else this.#options.host.schedule(this);
  }

  /** Back to RESET: every attribute has its initial value, what is posted disappears without completions. */
  #discard(): void {
    Object.assign(this.attributes, initialAttributes());
    this.#psn = 0;
    this.#sends.discard();
    this.#receives.discard();
  }

  /** Datagrams are not answered. */
  settle(): boolean {
    return false;
  }

  destroy(): void {
    this.#discard();
  }

  onDeadline(): void {}

  watch(): never {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', 'only connected queue pairs are watched');
  }

  get progress(): QpProgress {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', 'only connected queue pairs are inspected');
  }

  carries({ info }: RocePacket): boolean {
    return info.transport === 'UD';
  }

  accepts(): boolean {
    const { state } = this.attributes;
    return state === QPS_RTR || state === QPS_RTS || state === QPS_SQD || state === QPS_SQE;
  }

  matchesQkey(packet: RocePacket): boolean {
    return packet.qkey === this.attributes.qkey;
  }

  emit(batch: TxBatch): boolean {
    if (this.attributes.state !== QPS_RTS) return false;
    const index = this.#options.sendQueue.consumer;
    if (!this.#options.sendQueue.isPublished(index)) return false;
    this.#options.sendQueue.read(index, this.#wqe);
    const status = this.#emitMessage(batch);
    if (status === STATUS_SUCCESS) this.#sends.complete(index, status);
    else this.#sends.stop(status);
    return true;
  }

  #emitMessage(batch: TxBatch): number {
    const wqe = this.#wqe;
    if (wqe.opcode !== WR_SEND && wqe.opcode !== WR_SEND_WITH_IMM) return STATUS_LOC_QP_OP_ERR;
    const path = this.#options.host.pathOf(wqe.ah, this.#options.pd);
    if (path === undefined) return STATUS_LOC_QP_OP_ERR;
    if (wqe.messageBytes > this.#options.host.pathMtuMax) return STATUS_LOC_LEN_ERR;
    if ((wqe.flags & SEND_INLINE) !== 0)
      this.#source.loadPlain(this.#options.sendQueue.bytes, wqe.inlineOffset, wqe.messageBytes);
    else if (!this.#source.load(wqe.sges, this.#options.host.keys, this.#options.pd, 0)) return STATUS_LOC_PROT_ERR;
    const pad = -wqe.messageBytes & 3;
    const solicited = (wqe.flags & SEND_SOLICITED) !== 0 ? BTH_SOLICITED : 0;
    const withImmediate = wqe.opcode === WR_SEND_WITH_IMM;
    const opcode = withImmediate ? UD_SEND_ONLY_IMM : UD_SEND_ONLY;
    const b = batch.slab;
    let o = batch.payloadOffset(batch.count);
    o = writeBth(b, o, opcode, solicited | BTH_MIGREQ | (pad << BTH_PAD_SHIFT), wqe.remoteQpn, false, this.#psn);
    o = writeDeth(b, o, isControlled(wqe.qkey) ? this.attributes.qkey : wqe.qkey, this.qpn);
    if (withImmediate) o = writeImm(b, o, wqe.immediate);
    this.#source.gather(0, wqe.messageBytes, b, o);
    o += wqe.messageBytes;
    for (let p = 0; p < pad; p++) b[o++] = 0;
    this.#psn = psnAdd(this.#psn, 1);
    path.seal(batch, o, this.#options.host.nextIpId());
    return STATUS_SUCCESS;
  }

  receive(packet: RocePacket, datagram: RxDatagram): void {
    const receives = this.#receives;
    if (!receives.bind()) {
      this.#options.host.counters[COUNTER.out_of_buffer]++;
      return;
    }
    const total = GRH_BYTES + packet.payloadBytes;
    if (!this.#sink.load(receives.wqe.sges, this.#options.host.keys, this.#options.pd, ACCESS_LOCAL_WRITE)) {
      receives.fail(STATUS_LOC_PROT_ERR);
      return;
    }
    if (total > this.#sink.totalBytes) {
      receives.fail(STATUS_LOC_LEN_ERR);
      return;
    }
    writeGrh(this.#grh, datagram);
    this.#sink.scatter(0, GRH_BYTES, this.#grh, 0);
    this.#sink.scatter(GRH_BYTES, packet.payloadBytes, datagram.bytes, packet.payloadOffset);
    const withImmediate = (packet.info.headers & HDR_IMM) !== 0;
    const flags = WC_FLAG_GRH | (withImmediate ? WC_FLAG_WITH_IMM : 0) | (packet.solicited ? WC_FLAG_SOLICITED : 0);
    const immediate = withImmediate ? packet.immediate : 0;
    receives.complete(STATUS_SUCCESS, WC_RECV, flags, total, immediate, packet.sourceQpn);
  }
}

/** A work request with bit 31 set names no Q_Key: the queue pair's own is sent (IBTA vol. 1 §10.2.5). */
function isControlled(qkey: number): boolean {
  return qkey >>> 31 === 1;
}

/**
 * The IP header of the datagram as far as it is known, in the 40 bytes that verbs reserve for it: IPv6 as is, IPv4 in
 * the last 20.
 */
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
