/** Telemetry events of a queue pair: `NO_PROBE` does nothing, `PageProbe` writes a telemetry page. */

import { readU24 } from '../core/bytes.js';
import {
  NEVER,
  QP_COUNTER,
  SCALAR_ACTIVE,
  SCALAR_ACTIVE_SINCE,
  SCALAR_TIMEOUTS,
  SCALAR_WAITING,
  SCALAR_WAITING_SINCE,
  STAMP_T2,
  STAMP_T3,
  STAMP_T4,
  STAMP_T5,
  TelemetryPage,
  WAIT_NOTHING,
} from '../memory/ring/telemetry-page.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import { NAK_PSN_SEQUENCE, SYNDROME_KIND_ACK, SYNDROME_KIND_RNR, syndromeKind } from '../packet/aeth.js';
import { CNP, HDR_AETH, OP_ACK, OPCODES } from '../packet/opcode.js';
import { BTH_BYTES, type RocePacket } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';

const TX_PACKETS = QP_COUNTER.tx_packets;
const TX_BYTES = QP_COUNTER.tx_bytes;
const TX_RETRANSMITTED = QP_COUNTER.tx_retransmitted;
const RX_PACKETS = QP_COUNTER.rx_packets;
const RX_BYTES = QP_COUNTER.rx_bytes;
const OUT_OF_SEQUENCE = QP_COUNTER.out_of_sequence;
const DUPLICATE_REQUEST = QP_COUNTER.duplicate_request;
const HAS_AETH = Uint8Array.from(OPCODES, (info) => (info !== undefined && (info.headers & HDR_AETH) !== 0 ? 1 : 0));

export interface QpProbe {
  /** Time of the following events; the queue pair sets it whenever it gets the time. */
  nowNs: number;
  /** A packet of the WQE at `index` was sent for the first time, perhaps the first one, perhaps the last. */
  sent(index: number, isFirst: boolean, isLast: boolean): void;
  resent(): void;
  /** The WQE has its last answer, though it cannot complete before older ones. */
  answered(index: number): void;
  completed(index: number): void;
  /**
   * The send side, or that of READ responses, is stalled for this cause (WAIT_*), continues, or has nothing to do
   * (WAIT_NOTHING).
   */
  waits(cause: number): void;
  /** Everything posted disappears without completing; the next WQE will have this index. */
  discarded(next: number): void;
  timedOut(afterNs: number): void;
  packetSent(batch: TxBatch): void;
  /** A packet that passed all checks; `distance` from the expected PSN, 0 for answers. */
  packetReceived(packet: RocePacket, bytes: number, distance: number): void;
}

export const NO_PROBE: QpProbe = {
  nowNs: 0,
  sent: () => {},
  resent: () => {},
  answered: () => {},
  completed: () => {},
  waits: () => {},
  discarded: () => {},
  timedOut: () => {},
  packetSent: () => {},
  packetReceived: () => {},
};

/** Where the parts of a queue pair find the probe that is in use. */
export class ProbeSlot {
  current: QpProbe = NO_PROBE;

  /** From now on telemetry goes to the page in this memory. Throws ERR_ROCE_OUT_OF_RANGE when it is too small. */
  watch(memory: ArrayBufferLike, { depth, consumer }: SendQueue): void {
    this.current = new PageProbe(new TelemetryPage(memory, depth), consumer);
  }
}

export class PageProbe implements QpProbe {
  nowNs = 0;
  readonly page: TelemetryPage;
  #waiting = WAIT_NOTHING;
  #active = 0;
  /** Index after the newest WQE that has T2: they are sent in order, and a flush completes those that never were. */
  #firstUnsent: number;

  /** `consumer`: the index of the oldest WQE that is not complete. */
  constructor(page: TelemetryPage, consumer: number) {
    this.page = page;
    this.#firstUnsent = consumer;
    page.scalars[SCALAR_WAITING] = WAIT_NOTHING;
    page.scalars[SCALAR_ACTIVE_SINCE] = NEVER;
  }

  sent(index: number, isFirst: boolean, isLast: boolean): void {
    const { page, nowNs } = this;
    const { stamps, scalars } = page;
    const o = page.stampsOf(index);
    if (isFirst) {
      stamps[o + STAMP_T2] = nowNs;
      stamps[o + STAMP_T3] = 0;
      stamps[o + STAMP_T4] = 0;
      this.#firstUnsent = (index + 1) >>> 0;
      if (this.#active++ === 0) scalars[SCALAR_ACTIVE_SINCE] = nowNs;
    }
    if (isLast) stamps[o + STAMP_T3] = nowNs;
    this.waits(WAIT_NOTHING);
  }

  resent(): void {
    this.page.counters[TX_RETRANSMITTED]++;
    this.waits(WAIT_NOTHING);
  }

  answered(index: number): void {
    this.page.stamps[this.page.stampsOf(index) + STAMP_T4] = this.nowNs;
  }

  completed(index: number): void {
    const { page, nowNs } = this;
    const { stamps } = page;
    const o = page.stampsOf(index);
    stamps[o + STAMP_T5] = nowNs;
    if (((index - this.#firstUnsent) | 0) >= 0) {
      stamps.fill(0, o + STAMP_T2, o + STAMP_T5);
      return;
    }
    if (stamps[o + STAMP_T4] === 0) stamps[o + STAMP_T4] = nowNs;
    if (--this.#active === 0) this.#endActivity();
  }

  discarded(next: number): void {
    if (this.#active > 0) this.#endActivity();
    this.#active = 0;
    this.#firstUnsent = next;
    this.waits(WAIT_NOTHING);
  }

  #endActivity(): void {
    const { scalars } = this.page;
    scalars[SCALAR_ACTIVE] += this.nowNs - scalars[SCALAR_ACTIVE_SINCE];
    scalars[SCALAR_ACTIVE_SINCE] = NEVER;
  }

  waits(cause: number): void {
    const before = this.#waiting;
    if (before === cause) return;
    const { scalars, waits } = this.page;
    if (before !== WAIT_NOTHING) waits[before] += this.nowNs - scalars[SCALAR_WAITING_SINCE];
    scalars[SCALAR_WAITING_SINCE] = this.nowNs;
    scalars[SCALAR_WAITING] = cause;
    this.#waiting = cause;
  }

  timedOut(afterNs: number): void {
    this.page.counters[QP_COUNTER.local_ack_timeout_err]++;
    this.page.scalars[SCALAR_TIMEOUTS] += afterNs;
  }

  packetSent(batch: TxBatch): void {
    const { page } = this;
    const slot = batch.count - 1;
    const b = batch.slab;
    const o = batch.payloadOffset(slot);
    const bytes = batch.lengths[slot];
    page.counters[TX_PACKETS]++;
    page.counters[TX_BYTES] += bytes;
    const opcode = b[o];
    if (opcode === CNP) page.counters[QP_COUNTER.np_cnp_sent]++;
    page.recordPacket(
      this.nowNs,
      true,
      opcode,
      readU24(b, o + 9),
      bytes,
      HAS_AETH[opcode] === 0 ? 0 : b[o + BTH_BYTES],
    );
  }

  packetReceived(packet: RocePacket, bytes: number, distance: number): void {
    const { counters } = this.page;
    counters[RX_PACKETS]++;
    counters[RX_BYTES] += bytes;
    if (packet.info.kind === OP_ACK) counters[answerCounter(packet.syndrome)]++;
    else if (distance > 0) counters[OUT_OF_SEQUENCE]++;
    else if (distance < 0) counters[DUPLICATE_REQUEST]++;
    const { opcode } = packet;
    if (opcode === CNP) counters[QP_COUNTER.rp_cnp_received]++;
    this.page.recordPacket(this.nowNs, false, opcode, packet.psn, bytes, HAS_AETH[opcode] === 0 ? 0 : packet.syndrome);
  }
}

function answerCounter(syndrome: number): number {
  const kind = syndromeKind(syndrome);
  if (kind === SYNDROME_KIND_ACK) return QP_COUNTER.rx_acks;
  if (kind === SYNDROME_KIND_RNR) return QP_COUNTER.rnr_nak_received;
  return syndrome === NAK_PSN_SEQUENCE ? QP_COUNTER.packet_seq_err : QP_COUNTER.rx_fatal_naks;
}
