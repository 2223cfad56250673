/** Packets that a switch has cut, to be asked for again: what a responder owes for them. */

import { VENDOR_TRIM_NAK } from '../packet/opcode.js';
import { BTH_MIGREQ, writeBth } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import { COUNTER } from '../ring/counters.js';
import { CNP_DSCP } from './path.js';
import type { QpShared } from './shared.js';

/** Reports that may wait; a power of two. What does not fit is found missing as what was lost is. */
const REPORTS_MAX = 64;

/** A queue of PSNs. */
export class TrimReports {
  readonly #qp: QpShared;
  readonly #psns = new Uint32Array(REPORTS_MAX);
  #first = 0;
  #count = 0;

  constructor(qp: QpShared) {
    this.#qp = qp;
  }

  /** Something is to be reported. */
  get isPending(): boolean {
    return this.#count > 0;
  }

  /** Nothing is owed any more. */
  clear(): void {
    this.#count = 0;
  }

  /** The packet with this PSN is to be asked for. */
  add(psn: number): void {
    if (this.#count === REPORTS_MAX) return;
    this.#psns[(this.#first + this.#count) & (REPORTS_MAX - 1)] = psn;
    this.#count++;
  }

  /** Sends the oldest report, with the priority of congestion notifications. */
  emit(batch: TxBatch): void {
    const qp = this.#qp;
    const psn = this.#psns[this.#first];
    this.#first = (this.#first + 1) & (REPORTS_MAX - 1);
    this.#count--;
    const start = batch.payloadOffset(batch.count);
    const end = writeBth(batch.slab, start, VENDOR_TRIM_NAK, BTH_MIGREQ, qp.attributes.destQpn, false, psn);
    qp.host.counters[COUNTER.trim_nak_sent]++;
    qp.path.seal(batch, end, qp.host.nextIpId(), 0, CNP_DSCP);
  }
}
