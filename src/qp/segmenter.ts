/**
 * Turns SEND and WRITE messages into packets (IBTA vol. 1 §9.7.2, §9.7.3.1). Each transmission and retransmission makes
 * the packet from the work request: no copy is kept. Reliable and unreliable connections differ only in the opcodes.
 */

import { COUNTER } from '../memory/ring/counters.js';
import {
  SEND_INLINE,
  SEND_SOLICITED,
  WR_RDMA_WRITE,
  WR_RDMA_WRITE_WITH_IMM,
  WR_SEND,
  WR_SEND_WITH_IMM,
  WR_SEND_WITH_INV,
} from '../memory/ring/enums.js';
import { type SendQueue, SendWqe } from '../memory/ring/work-queue.js';
import { SgeCursor } from '../memory/sge-cursor.js';
import { INT_DATA_CREDIT, INT_NONE, writeDataTrailer, writeWanted } from '../packet/int-trailer.js';
import * as op from '../packet/opcode.js';
import {
  BTH_MIGREQ,
  BTH_PAD_SHIFT,
  BTH_SOLICITED,
  ICRC_BYTES,
  writeBth,
  writeIeth,
  writeImm,
  writeReth,
} from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import { borrowPayload } from './borrowed-payload.js';
import type { QueuePairParts } from './transport.js';

type Parts = Pick<QueuePairParts, 'host' | 'pd' | 'attributes' | 'sendQueue' | 'link' | 'congestion'>;

const TX_DATA_PACKETS = COUNTER.tx_data_packets;

/** Packet opcodes of one kind of message: first, middle, last, only. */
type PositionOpcodes = readonly [first: number, middle: number, last: number, only: number];

/** Packet opcodes by work request opcode; undefined where the transport has no such message. */
export type DataOpcodes = ReadonlyArray<PositionOpcodes | undefined>;

function byWorkRequest(rows: ReadonlyArray<readonly [wrOpcode: number, opcodes: PositionOpcodes]>): DataOpcodes {
  const table = Array<PositionOpcodes | undefined>(WR_SEND_WITH_INV + 1).fill(undefined);
  for (const [wrOpcode, opcodes] of rows) table[wrOpcode] = opcodes;
  return table;
}

/** SEND and WRITE of a transport whose opcodes begin at `base`: they look the same in RC (0x00) and UC (0x20). */
function sendAndWrite(base: number): ReadonlyArray<readonly [number, PositionOpcodes]> {
  const withBase = (...opcodes: PositionOpcodes): PositionOpcodes =>
    opcodes.map((opcode) => base | opcode) as unknown as PositionOpcodes;
  return [
    [WR_SEND, withBase(op.RC_SEND_FIRST, op.RC_SEND_MIDDLE, op.RC_SEND_LAST, op.RC_SEND_ONLY)],
    [WR_SEND_WITH_IMM, withBase(op.RC_SEND_FIRST, op.RC_SEND_MIDDLE, op.RC_SEND_LAST_IMM, op.RC_SEND_ONLY_IMM)],
    [WR_RDMA_WRITE, withBase(op.RC_WRITE_FIRST, op.RC_WRITE_MIDDLE, op.RC_WRITE_LAST, op.RC_WRITE_ONLY)],
    [
      WR_RDMA_WRITE_WITH_IMM,
      withBase(op.RC_WRITE_FIRST, op.RC_WRITE_MIDDLE, op.RC_WRITE_LAST_IMM, op.RC_WRITE_ONLY_IMM),
    ],
  ];
}

export const RC_DATA_OPCODES = byWorkRequest([
  ...sendAndWrite(op.RC_BASE),
  [WR_SEND_WITH_INV, [op.RC_SEND_FIRST, op.RC_SEND_MIDDLE, op.RC_SEND_LAST_INV, op.RC_SEND_ONLY_INV]],
]);
export const UC_DATA_OPCODES = byWorkRequest(sendAndWrite(op.UC_BASE));

export class Segmenter {
  readonly #parts: Parts;
  readonly #sq: SendQueue;
  readonly #opcodes: DataOpcodes;
  readonly #source = new SgeCursor();
  #resolved = -1;
  readonly wqe = new SendWqe();
  /** Packets to be sent after the next one, if data packets announce that number. */
  wanted = 0;
  /**
   * The next packet may send data from memory of several threads without a copy, if no peer can write to it. Only if
   * the request completes after its sending, and not for retransmissions. If a program changes posted data, the packet
   * is lost and its retransmission arrives.
   */
  trustsProgram = false;

  constructor(parts: Parts, opcodes: DataOpcodes) {
    this.#parts = parts;
    this.#sq = parts.sendQueue;
    this.#opcodes = opcodes;
  }

  /** Drops the message: the next one posted may have the same index. */
  reset(): void {
    this.#resolved = -1;
  }

  read(index: number): void {
    this.#sq.read(index, this.wqe);
    this.#resolved = -1;
  }

  get isData(): boolean {
    return this.#opcodes[this.wqe.opcode] !== undefined;
  }

  /** False: they are not allowed. */
  resolve(required: number): boolean {
    const { wqe } = this;
    const { host, pd } = this.#parts;
    if ((wqe.flags & SEND_INLINE) !== 0) {
      this.#source.loadPlain(this.#sq.bytes, wqe.inlineOffset, wqe.messageBytes);
    } else if (!this.#source.load(wqe.sges, host.keys, pd, required)) return false;
    this.#resolved = wqe.index;
    return true;
  }

  /** True when the message at `index` is the one that is resolved, and its buffers are still there. */
  holds(index: number): boolean {
    return this.#resolved === index && this.#source.stillValid;
  }

  /** PSNs that the message which was read takes: its packets; for a READ its responses. */
  get packetCount(): number {
    return Math.max(1, Math.ceil(this.wqe.messageBytes / this.#parts.link.mtuBytes));
  }

  payloadBytes(place: number, isLast: boolean): number {
    const { mtuBytes } = this.#parts.link;
    return isLast ? this.wqe.messageBytes - place * mtuBytes : mtuBytes;
  }

  /** Copies the data of a message that is one packet. Returns the offset after them. */
  copyData(to: Uint8Array, offset: number): number {
    const { messageBytes } = this.wqe;
    if (this.#parts.host.carriesPayload) this.#source.gather(0, messageBytes, to, offset);
    return offset + messageBytes;
  }

  /** Writes packet `place` of the message into the batch's next slot and seals it. */
  write(batch: TxBatch, place: number, isLast: boolean, ackReq: boolean, psn: number, now: number): void {
    const { wqe } = this;
    const { host, attributes, link, congestion } = this.#parts;
    const isFirst = place === 0;
    const bytes = this.payloadBytes(place, isLast);
    const pad = -bytes & 3;
    const isPlainWrite = wqe.opcode === WR_RDMA_WRITE;
    let flags = BTH_MIGREQ | (pad << BTH_PAD_SHIFT);
    if (isLast && (wqe.flags & SEND_SOLICITED) !== 0 && !isPlainWrite) flags |= BTH_SOLICITED;
    const opcodes = this.#opcodes[wqe.opcode]!;
    const opcode = isFirst ? opcodes[isLast ? 3 : 0] : opcodes[isLast ? 2 : 1];
    const b = batch.slab;
    const start = batch.payloadOffset(batch.count);
    let o = writeBth(b, start, opcode, flags, attributes.destQpn, ackReq, psn);
    if (isFirst && (isPlainWrite || wqe.opcode === WR_RDMA_WRITE_WITH_IMM)) {
      o = writeReth(b, o, wqe.remoteHigh, wqe.remoteLow, wqe.rkey, wqe.messageBytes);
    }
    if (isLast) {
      if (wqe.opcode === WR_SEND_WITH_IMM || wqe.opcode === WR_RDMA_WRITE_WITH_IMM) o = writeImm(b, o, wqe.immediate);
      else if (wqe.opcode === WR_SEND_WITH_INV) o = writeIeth(b, o, wqe.immediate);
    }
    const { dataIntKind } = congestion;
    if (
      host.carriesPayload &&
      (dataIntKind !== INT_NONE || !this.#borrow(batch, place * link.mtuBytes, bytes, o - start))
    ) {
      this.#source.gather(place * link.mtuBytes, bytes, b, o);
    }
    o += bytes;
    for (let p = 0; p < pad; p++) b[o++] = 0;
    if (bytes > 0) host.counters[TX_DATA_PACKETS]++;
    if (dataIntKind !== INT_NONE) {
      o = writeDataTrailer(b, start, o + ICRC_BYTES, dataIntKind, now, link.path.chosenEntropy) - ICRC_BYTES;
      if (dataIntKind === INT_DATA_CREDIT) writeWanted(b, o + ICRC_BYTES, this.wanted);
    }
    link.seal(batch, o, congestion.dataEcn);
  }

  #borrow(batch: TxBatch, offset: number, length: number, headerBytes: number): boolean {
    if (!batch.mayBorrow) return false;
    const range = this.#source.rangeOf(offset, length);
    if (range === undefined || !(range.isOfThisThread || (this.trustsProgram && range.isOfThisProgram))) return false;
    return borrowPayload(batch, range, this.#source.rangeSkip, length, headerBytes);
  }
}
