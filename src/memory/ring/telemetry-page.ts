/**
 * A queue pair's telemetry page: memory that the NIC writes while it works and the application reads at any time, as a
 * NIC would by DMA. No command, no lock, nothing on the completion path.
 *
 *     f64 scalars     SCALAR_* below
 *     f64 waits       nanoseconds the send side was stalled, by cause
 *     f64 counters    in the order of QP_COUNTER_NAMES
 *     f64 stamps      T1..T5 of each send WQE, at (index mod depth); T1 is the application's, the others the NIC's
 *     records         the newest packet headers, both ways
 *
 * One writer per field. A reader in another thread may catch a packet record half written: it is for people.
 */

import { RoceError } from '../../core/errors.js';
import { PSN_MASK } from '../../packet/psn.js';

/**
 * The stamps of a work request after RDMA Estats (Bai et al., "Empowering Azure Storage with RDMA", NSDI 2023, §5), all
 * on the engine's clock: T1 posted, T2 first packet handed to the port, T3 last packet first sent, T4 the answer that
 * covers its last PSN, T5 CQE generated. (T6, CQE polled, is known only to the polling application.)
 */
export const STAMP_T1 = 0;
export const STAMP_T2 = 1;
export const STAMP_T3 = 2;
/** The answer that covers its last PSN has come. */
export const STAMP_T4 = 3;
export const STAMP_T5 = 4;
const STAMPS = 5;

/** Why the send side of a queue pair is stalled although there is something to send. */
export const WAIT_CAUSES = ['window', 'readLimit', 'fence', 'rnr', 'pacing'] as const;
/** A name of {@link WAIT_CAUSES}. */
export type WaitCause = (typeof WAIT_CAUSES)[number];
export const WAIT_WINDOW = 0;
export const WAIT_READ_LIMIT = 1;
export const WAIT_FENCE = 2;
export const WAIT_RNR = 3;
export const WAIT_PACING = 4;
export const WAIT_NOTHING = -1;

/** Counters of one queue pair while it has telemetry; the NIC's counters of the same name are totals of all. */
export const QP_COUNTER_NAMES = [
  'tx_packets', // packets sent, answers included
  'tx_bytes', // UDP payload bytes sent
  'rx_packets', // packets accepted
  'rx_bytes', // UDP payload bytes accepted
  'tx_retransmitted', // request packets sent again
  'rx_acks', // ACKs received
  'packet_seq_err', // NAK PSN sequence errors and SACKs received
  'rnr_nak_received', // RNR NAKs received
  'rx_fatal_naks', // NAK 0x61..0x63 received
  'local_ack_timeout_err', // acknowledgement timeouts
  'out_of_sequence', // request packets that arrived ahead of the expected PSN
  'duplicate_request', // request packets behind the expected PSN
  'np_cnp_sent', // congestion notifications sent
  'rp_cnp_received', // congestion notifications received
] as const;
/** Name of a counter of one queue pair. */
export type QpCounterName = (typeof QP_COUNTER_NAMES)[number];
export const QP_COUNTER = Object.fromEntries(QP_COUNTER_NAMES.map((name, i) => [name, i])) as Readonly<
  Record<QpCounterName, number>
>;

export const SCALAR_WAITING = 0;
/** Start of the current wait, ns; meaningless with {@link WAIT_NOTHING}. */
export const SCALAR_WAITING_SINCE = 1;
/**
 * Time during which at least one work request was between T2 and T5, and the start of the current such time, or NEVER.
 */
export const SCALAR_ACTIVE = 2;
/** Start of the current such time, ns, or {@link NEVER}. */
export const SCALAR_ACTIVE_SINCE = 3;
/** Time spent waiting for acknowledgements that never came, until the timer ended it. */
export const SCALAR_TIMEOUTS = 4;
/** Packets recorded since the beginning: the place of the next record. */
export const SCALAR_RECORDED = 5;
const SCALARS = 8;
export const NEVER = -1;

/** Packet headers that a page remembers: a power of two. */
export const PACKET_RECORDS = 64;
/**
 * f64 time; u32 PSN and, in the high byte, the opcode; u32 UDP payload bytes (16 bits), AETH syndrome (8 bits),
 * direction (1 bit).
 */
const RECORD_BYTES = 16;
const RECORD_SENT = 1 << 24;

/** Times are nanoseconds of the engine's clock. */
export class TelemetryPage {
  readonly memory: ArrayBufferLike;
  readonly scalars: Float64Array;
  readonly waits: Float64Array;
  readonly counters: Float64Array;
  /** Of each send WQE its stamps: STAMP_* behind {@link stampsOf}. */
  readonly stamps: Float64Array;
  readonly #mask: number;
  #recorded = 0;
  readonly #recordTimes: Float64Array;
  readonly #recordWords: Uint32Array;

  /** Bytes a page needs for a send queue of `depth` elements, a power of two. */
  static bytesFor(depth: number): number {
    const numbers = SCALARS + WAIT_CAUSES.length + QP_COUNTER_NAMES.length + depth * STAMPS;
    return numbers * 8 + PACKET_RECORDS * RECORD_BYTES;
  }

  /** Both sides construct it over the same memory. */
  constructor(memory: ArrayBufferLike, depth: number) {
    if (memory.byteLength < TelemetryPage.bytesFor(depth)) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a telemetry page of ${memory.byteLength} bytes is too small`);
    }
    this.memory = memory;
    let offset = 0;
    const numbers = (count: number) => {
      const array = new Float64Array(memory, offset, count);
      offset += count * 8;
      return array;
    };
    this.scalars = numbers(SCALARS);
    this.waits = numbers(WAIT_CAUSES.length);
    this.counters = numbers(QP_COUNTER_NAMES.length);
    this.stamps = numbers(depth * STAMPS);
    this.#mask = depth - 1;
    this.#recordTimes = numbers(PACKET_RECORDS);
    this.#recordWords = new Uint32Array(memory, offset, PACKET_RECORDS * 2);
  }

  stampsOf(index: number): number {
    return (index & this.#mask) * STAMPS;
  }

  recordPacket(timeNs: number, sent: boolean, opcode: number, psn: number, bytes: number, syndrome: number): void {
    const i = this.#recorded & (PACKET_RECORDS - 1);
    this.#recorded++;
    this.scalars[SCALAR_RECORDED] = this.#recorded;
    this.#recordTimes[i] = timeNs;
    this.#recordWords[2 * i] = psn | (opcode << 24);
    this.#recordWords[2 * i + 1] = bytes | (syndrome << 16) | (sent ? RECORD_SENT : 0);
  }

  packets(): PacketRecord[] {
    const recorded = this.scalars[SCALAR_RECORDED];
    const packets: PacketRecord[] = [];
    for (let n = Math.max(0, recorded - PACKET_RECORDS); n < recorded; n++) {
      const i = n & (PACKET_RECORDS - 1);
      const first = this.#recordWords[2 * i];
      const second = this.#recordWords[2 * i + 1];
      packets.push({
        timeNs: this.#recordTimes[i],
        sent: (second & RECORD_SENT) !== 0,
        opcode: first >>> 24,
        psn: first & PSN_MASK,
        bytes: second & 0xffff,
        syndrome: (second >>> 16) & 0xff,
      });
    }
    return packets;
  }
}

export interface PacketRecord {
  readonly timeNs: number;
  readonly sent: boolean;
  readonly opcode: number;
  /** 24 bits. */
  readonly psn: number;
  readonly bytes: number;
  readonly syndrome: number;
}
