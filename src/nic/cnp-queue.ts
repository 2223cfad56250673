/** Congestion notifications that wait to be sent: before all data, and however full or paused the data's own way is. */

import type { TxBatch } from '../port/datagram.js';
import type { NotificationSender } from '../qp/host.js';
import { RunQueue } from './run-queue.js';

/** Notifications one QP may have pending. More than one is pending only where each mark is answered, or while their priority is paused. */
const PENDING_MAX = 64;

/** The notifications of one NIC. */
export class CnpQueue {
  /** QPs that have notifications to send. */
  readonly #qps = new RunQueue<NotificationSender>();

  /** Nothing waits. */
  get isEmpty(): boolean {
    return this.#qps.isEmpty;
  }

  /** The peer of the QP is to be told that its packets meet congestion. */
  add(qp: NotificationSender): void {
    if (qp.cnpsPending === PENDING_MAX) return;
    if (qp.cnpsPending++ === 0) this.#qps.push(qp);
  }

  /** Fills the batch; returns how many notifications it added. */
  emit(batch: TxBatch, now: number): number {
    const before = batch.count;
    while (batch.count < batch.capacity) {
      const qp = this.#qps.shift();
      if (qp === undefined) break;
      if (qp.cnpsPending === 0) continue; // It was reset meanwhile.
      qp.cnpsPending = qp.emitCnp(batch, now) ? qp.cnpsPending - 1 : 0;
      if (qp.cnpsPending > 0) this.#qps.push(qp);
    }
    return batch.count - before;
  }
}
