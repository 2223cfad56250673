/**
 * Congestion notifications that wait to be sent: they go before all data, even if the path of data is full or paused.
 */

import type { TxBatch } from '../port/datagram.js';
import type { NotificationSender } from '../qp/host.js';
import { RunQueue } from './run-queue.js';

/** More than one is pending only if each mark is answered, or while their priority is paused. */
const PENDING_MAX = 64;

export class CnpQueue {
  readonly #qps = new RunQueue<NotificationSender>();

  get isEmpty(): boolean {
    return this.#qps.isEmpty;
  }

  /** Queues a CNP to the peer of the QP. */
  add(qp: NotificationSender): void {
    if (qp.cnpsPending === PENDING_MAX) return;
    if (qp.cnpsPending++ === 0) this.#qps.push(qp);
  }

  emit(batch: TxBatch, now: number): number {
    const before = batch.count;
    while (batch.count < batch.capacity) {
      const qp = this.#qps.shift();
      if (qp === undefined) break;
      if (qp.cnpsPending === 0) continue;
      qp.cnpsPending = qp.emitCnp(batch, now) ? qp.cnpsPending - 1 : 0;
      if (qp.cnpsPending > 0) this.#qps.push(qp);
    }
    return batch.count - before;
  }
}
