import { RoceError } from '../core/errors.js';
import type { CancellationState } from '../core/wait.js';
import type { WorkCompletion } from '../verbs/completion-queue.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { SendWorkRequest } from '../verbs/send-work-request.js';

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

export class Operations {
  readonly #qp: QueuePair;
  readonly #pending = new Map<number, Pending>();
  readonly #queued = new Set<Queued>();
  #nextWrId = 1;
  #failure: RoceError | undefined;

  constructor(qp: QueuePair) {
    this.#qp = qp;
  }

  get failure(): RoceError | undefined {
    return this.#failure;
  }

  get count(): number {
    return this.#pending.size + this.#queued.size;
  }

  /**
   * Posts the operation behind those before it. Resolves with its completion, rejects with what failed. Once the caller
   * has given up, it is not posted; if it was, its memory is the NIC's until the promise settles.
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

  post(): void {
    for (const queued of this.#queued) {
      if (this.#failure === undefined && this.#qp.sendRoom <= 0) return;
      this.#queued.delete(queued);
      if (this.#failure === undefined) this.#postOne(queued.operation, queued);
      else queued.reject(this.#failure);
    }
  }

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

  onCompletion({ wrId, status }: WorkCompletion): void {
    const pending = this.#pending.get(Number(wrId));
    this.#pending.delete(Number(wrId));
    if (status === 0) pending?.resolve();
    else pending?.reject(this.#failure ?? new RoceError('ERR_ROCE_COMPLETION', 'a work request failed'));
    this.post();
  }

  /** Only the first failure is kept. */
  fail(error: RoceError): void {
    this.#failure ??= error;
    this.post();
  }

  abandon(): void {
    for (const { reject } of this.#pending.values()) reject(this.#failure!);
    this.#pending.clear();
  }
}
