/** Writes of one event loop iteration travel in one call; while a call is in flight the next one fills. */

import { RoceError } from 'rocev2/internal/core';
import { WRITES_MAX, type WriteOp, type WriteResult } from './protocol.js';

/** Bytes of keys and values in a call that has more than one write. */
const BATCH_BYTES_MAX = 512 << 10;

interface Waiting {
  readonly op: WriteOp;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: unknown) => void;
}

export class Batch {
  readonly #send: (ops: readonly WriteOp[]) => Promise<readonly WriteResult[]>;
  readonly #waiting: Waiting[] = [];
  #isSending = false;

  constructor(send: (ops: readonly WriteOp[]) => Promise<readonly WriteResult[]>) {
    this.#send = send;
  }

  /** Rejects when the call fails; then it may have been executed. */
  add(op: WriteOp): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ op, resolve, reject });
      if (!this.#isSending) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isSending = true;
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#next();
      try {
        const results = await this.#send(batch.map(({ op }) => op));
        if (results.length !== batch.length)
          throw new RoceError('ERR_ROCE_MISMATCH', 'the owner answered other writes');
        for (const [k, { resolve }] of batch.entries()) resolve(results[k]);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isSending = false;
  }

  #next(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { op } of this.#waiting) {
      bytes += op.key.length + (op.value?.length ?? 0);
      if (count > 0 && (count === WRITES_MAX || bytes > BATCH_BYTES_MAX)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }
}
