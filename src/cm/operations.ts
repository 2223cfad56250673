/** The send side of a connection: work requests in the order of the calls, each with a promise. More than the send queue holds wait here. */

import { RoceError } from '../core/errors.js';
import type { CancellationState } from '../core/wait.js';
import type { WorkCompletion } from '../verbs/completion-queue.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { SendWorkRequest } from '../verbs/send-work-request.js';

/** A work request without what the connection adds. */
export type Operation = SendWorkRequest extends infer W
  ? W extends unknown
    ? Omit<W, 'wrId' | 'signaled' | 'fence'>
    : never
  : never;

interface Pending {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface Queued extends Pending {
  readonly operation: Operation;
}

/** Posts operations, and settles their promises by their completions. */
export class Operations {
  readonly #qp: QueuePair;
  readonly #pending = new Map<number, Pending>();
  /** Waiting for room in the send queue, in order. */
  readonly #queued = new Set<Queued>();
  #nextWrId = 1;
  #failure: RoceError | undefined;

  constructor(qp: QueuePair) {
    this.#qp = qp;
  }

  /** Why nothing is posted any more. */
  get failure(): RoceError | undefined {
    return this.#failure;
  }

  /** Operations that have not ended. */
  get count(): number {
    return this.#pending.size + this.#queued.size;
  }

  /**
   * Posts the operation behind those before it. Resolves with its completion, rejects with what failed. Once `cancellation`, it is not posted any more;
   * if it was, its memory is the NIC's until the promise settles.
   */
  run(operation: Operation, cancellation?: CancellationState): Promise<void> {
    return new Promise((resolve, reject) => {
      if (cancellation?.error !== undefined) {
        reject(cancellation.error);
        return;
      }
      if (this.#queued.size === 0 && this.#failure === undefined && this.#qp.sendRoom > 0) {
        this.#postOne(operation, { resolve, reject });
        return;
      }
      const queued: Queued = { operation, resolve, reject };
      this.#queued.add(queued);
      if (cancellation !== undefined) {
        cancellation.onEnd = (error) => {
          if (this.#queued.delete(queued)) reject(error);
        };
      }
      this.post();
    });
  }

  /** Posts what has room. */
  post(): void {
    for (const queued of this.#queued) {
      if (this.#failure === undefined && this.#qp.sendRoom <= 0) return;
      this.#queued.delete(queued);
      if (this.#failure === undefined) this.#postOne(queued.operation, queued);
      else queued.reject(this.#failure);
    }
  }

  /** The operation is the caller's for this call alone: it gets its number in place. */
  #postOne(operation: Operation, pending: Pending): void {
    const wrId = this.#nextWrId++;
    this.#pending.set(wrId, pending);
    try {
      this.#qp.postSend(Object.assign(operation, { wrId }) as SendWorkRequest);
    } catch (error) {
      this.#pending.delete(wrId);
      pending.reject(error as Error);
    }
  }

  /** A work request has completed. */
  onCompletion({ wrId, status }: WorkCompletion): void {
    const pending = this.#pending.get(Number(wrId));
    this.#pending.delete(Number(wrId));
    if (status === 0) pending?.resolve();
    else pending?.reject(this.#failure ?? new RoceError('ERR_ROCE_COMPLETION', 'a work request failed'));
    this.post();
  }

  /** Stops posting. Only the first failure is kept. */
  fail(error: RoceError): void {
    this.#failure ??= error;
    this.post();
  }

  /** What is posted will not complete any more: the queue pair, or its NIC, is gone. */
  abandon(): void {
    for (const { reject } of this.#pending.values()) reject(this.#failure!);
    this.#pending.clear();
  }
}
