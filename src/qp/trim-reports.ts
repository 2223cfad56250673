/** Trimmed packets for which a responder still has to request a retransmission. */

import { COUNTER } from '../memory/ring/counters.js';
import { VENDOR_TRIM_NAK } from '../packet/opcode.js';
import { BTH_MIGREQ, writeBth } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import { SELECTIVE_SPAN } from '../retransmit/packet-accounts.js';
import { CNP_DSCP } from './path.js';
import type { QueuePairParts } from './transport.js';

type Parts = Pick<QueuePairParts, 'host' | 'attributes' | 'link'>;

const REPORTS_FIRST = 64;
/** A report that does not fit is dropped; the packet is then recovered like a lost one. */
const REPORTS_MAX = SELECTIVE_SPAN;

export class TrimReports {
  readonly #parts: Parts;
  #psns = new Uint32Array(REPORTS_FIRST);
  #first = 0;
  #count = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get isPending(): boolean {
    return this.#count > 0;
  }

  clear(): void {
    this.#count = 0;
  }

  add(psn: number): void {
    if (this.#count === REPORTS_MAX) return;
    if (this.#count === this.#psns.length) this.#grow();
    this.#psns[(this.#first + this.#count) & (this.#psns.length - 1)] = psn;
    this.#count++;
  }

  /** Many headers arrived in one event loop iteration. */
  #grow(): void {
    const psns = new Uint32Array(2 * this.#count);
    for (let i = 0; i < this.#count; i++) psns[i] = this.#psns[(this.#first + i) & (this.#count - 1)];
    this.#psns = psns;
    this.#first = 0;
  }

  /** Sends the oldest report, with the priority of congestion notifications. */
  emit(batch: TxBatch): void {
    const { host, attributes, link } = this.#parts;
    const psn = this.#psns[this.#first];
    this.#first = (this.#first + 1) & (this.#psns.length - 1);
    this.#count--;
    const start = batch.payloadOffset(batch.count);
    const end = writeBth(batch.slab, start, VENDOR_TRIM_NAK, BTH_MIGREQ, attributes.destQpn, false, psn);
    host.counters[COUNTER.trim_nak_sent]++;
    link.seal(batch, end, 0, CNP_DSCP);
  }
}
