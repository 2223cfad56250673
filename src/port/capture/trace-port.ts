/**
 * A port that also traces packets and their outcome. It is the NIC's own port, so a dropped packet is known by the
 * counter that moves while it is handed over.
 */

import { readU24 } from '../../core/bytes.js';
import { COUNTER, COUNTER_NAMES } from '../../memory/ring/counters.js';
import { SYNDROME_KIND_ACK, syndromeKind } from '../../packet/aeth.js';
import { HDR_AETH, OP_CNP, opcodeName } from '../../packet/opcode.js';
import { BTH_BYTES, PARSE_OK, parseRoce, RocePacket } from '../../packet/roce.js';
import { syndromeName } from '../../packet/view.js';
import type { Port, RxDatagram, TxBatch } from '../datagram.js';
import { PortWrapper } from '../port-wrapper.js';
import type { EventData } from './events.js';
import { SentSequences } from './sent-sequences.js';
import type { TraceFile } from './trace-file.js';

export interface TracedNic {
  readonly counters: Float64Array;
  visitRates(visit: (qpn: number, rateBps: number, alpha: number) => void): void;
}

const DROP_COUNTERS = COUNTER_NAMES.filter((name) => name.startsWith('rx_drop_') || name === 'rx_icrc_errors').map(
  (name) => ({ name, index: COUNTER[name] }),
);
/** Where BTH has its destination QPN and PSN (IBTA vol. 1 §9.2). */
const QPN_OFFSET = 5;
const PSN_OFFSET = 9;

export class TracePort extends PortWrapper {
  readonly #trace: TraceFile;
  readonly #packet = new RocePacket();
  readonly #sequences = new SentSequences();
  readonly #rates = new Map<number, number>();
  readonly #drops = new Float64Array(DROP_COUNTERS.length);
  #nic: TracedNic | undefined;
  #timeouts = 0;

  constructor(inner: Port, trace: TraceFile) {
    super(inner);
    this.#trace = trace;
  }

  override get description(): string {
    return `${this.inner.description}, traced`;
  }

  watch(nic: TracedNic): void {
    this.#nic = nic;
  }

  sampleRates(): void {
    this.#nic?.visitRates((qpn, rate, alpha) => {
      if (this.#rates.get(qpn) === rate) return;
      this.#rates.set(qpn, rate);
      this.#trace.event('roce:rate_updated', { qpn, rate, ...(!Number.isNaN(alpha) && { alpha }) });
    });
  }

  faultDropped(direction: 'sent' | 'received', bytes: Uint8Array, offset: number, length: number): void {
    this.#dropped('fault_rule', direction, bytes, offset, length);
  }

  override sendBatch(batch: TxBatch): void {
    this.#timeoutsSince();
    for (let slot = 0; slot < batch.count; slot++) {
      const length = batch.lengths[slot];
      if (parseRoce(batch.slab, batch.payloadOffset(slot), length, this.#packet) !== PARSE_OK) continue;
      this.#wentBack();
      this.#trace.event('roce:packet_sent', this.#data(batch.ecns[slot]));
      this.#signal('sent');
    }
    this.inner.sendBatch(batch);
  }

  protected override receive(datagram: RxDatagram): void {
    const { bytes, offset, length, ecn } = datagram;
    if (parseRoce(bytes, offset, length, this.#packet) === PARSE_OK) {
      this.#trace.event('roce:packet_received', this.#data(ecn));
      this.#signal('received');
    }
    this.onDatagram(datagram);
    if (this.#nic === undefined) return;
    for (const [i, { name, index }] of DROP_COUNTERS.entries()) {
      const count = this.#nic.counters[index];
      if (count === this.#drops[i]) continue;
      this.#drops[i] = count;
      this.#dropped(name, 'received', bytes, offset, length);
    }
  }

  #data(ecn: number): EventData<'roce:packet_sent'> {
    const { info, destQpn, psn, payloadBytes, ackReq, syndrome, msn } = this.#packet;
    return {
      operation: opcodeName(info.opcode),
      dest_qpn: destQpn,
      psn,
      payload_length: payloadBytes,
      ...(ackReq && { ack_req: true }),
      ...(info.headers & HDR_AETH && { syndrome: syndromeName(syndrome), msn }),
      ...(ecn !== 0 && { ecn }),
    };
  }

  /** NAKs and congestion notifications have separate events. */
  #signal(direction: 'sent' | 'received'): void {
    const { info, destQpn, psn, syndrome } = this.#packet;
    if (info.kind === OP_CNP) this.#trace.event(`roce:cnp_${direction}`, { dest_qpn: destQpn });
    if ((info.headers & HDR_AETH) === 0 || syndromeKind(syndrome) === SYNDROME_KIND_ACK) return;
    this.#trace.event(`roce:nak_${direction}`, { dest_qpn: destQpn, psn, syndrome: syndromeName(syndrome) });
  }

  #wentBack(): void {
    const { destQpn, psn } = this.#packet;
    this.#sequences.take(this.#packet);
    if (!this.#sequences.hasGoneBack) return;
    this.#trace.event('roce:retransmission', { dest_qpn: destQpn, psn, newest_psn: this.#sequences.newestPsn });
  }

  #timeoutsSince(): void {
    const total = this.#nic?.counters[COUNTER.local_ack_timeout_err] ?? 0;
    if (total > this.#timeouts) this.#trace.event('roce:timeout', { count: total - this.#timeouts });
    this.#timeouts = total;
  }

  #dropped(trigger: string, direction: string, bytes: Uint8Array, offset: number, length: number): void {
    const hasBth = length >= BTH_BYTES;
    this.#trace.event('roce:packet_dropped', {
      trigger,
      direction,
      ...(hasBth && { dest_qpn: readU24(bytes, offset + QPN_OFFSET), psn: readU24(bytes, offset + PSN_OFFSET) }),
    });
  }
}
