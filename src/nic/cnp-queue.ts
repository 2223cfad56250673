/** Congestion notifications that wait to be sent: before all data, and however full or paused the data's own way is. */

import type { TxBatch } from '../port/datagram.js';
import type { RcQueuePair } from '../qp/rc-queue-pair.js';
import { RunQueue } from './run-queue.js';

/** Notifications one QP may owe. More than one is owed only where each mark is answered, or while their priority is paused. */
const OWED_MAX = 64;

export class CnpQueue {
  /** QPs that owe notifications. */
  readonly #qps = new RunQueue<RcQueuePair>();

  get isEmpty(): boolean {
    return this.#qps.isEmpty;
  }

  /** The peer of the QP is to be told that its packets meet congestion. */
  owe(qp: RcQueuePair): void {
    if (qp.cnpsOwed === OWED_MAX) return;
    if (qp.cnpsOwed++ === 0) this.#qps.push(qp);
  }

  /** Fills the batch; returns how many notifications it added. */
  emit(batch: TxBatch, now: number): number {
    const before = batch.count;
    while (batch.count < batch.capacity) {
      const qp = this.#qps.shift();
      if (qp === undefined) break;
      if (qp.cnpsOwed === 0) continue; // It was reset meanwhile.
      qp.cnpsOwed = qp.emitCnp(batch, now) ? qp.cnpsOwed - 1 : 0;
      if (qp.cnpsOwed > 0) this.#qps.push(qp);
    }
    return batch.count - before;
  }
}
