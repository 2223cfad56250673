/**
 * The send batches of one socket. node:dgram hands a datagram to the kernel inside `send` and only queues it when the
 * socket is full; a batch with queued datagrams stays out of use until the queue has drained. Sends stay in order: once
 * a datagram is queued, all later ones are also queued.
 */

import type { IpAddress } from '../packet/address.js';
import { TxBatch } from '../port/datagram.js';

export class BatchPool {
  readonly #free: TxBatch[] = [];
  readonly #queued: TxBatch[] = [];

  constructor(batches: number, slots: number, placeholder: IpAddress) {
    for (let i = 0; i < batches; i++) this.#free.push(new TxBatch(slots, placeholder));
  }

  take(queuedDatagrams: number): TxBatch | undefined {
    if (queuedDatagrams === 0) this.#reclaim();
    const batch = this.#free.pop();
    if (batch !== undefined) batch.count = 0;
    return batch;
  }

  give(batch: TxBatch, queuedDatagrams: number): void {
    (queuedDatagrams === 0 ? this.#free : this.#queued).push(batch);
  }

  #reclaim(): void {
    while (this.#queued.length > 0) this.#free.push(this.#queued.pop() as TxBatch);
  }
}
