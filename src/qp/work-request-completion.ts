/**
 * Completes the work requests of a reliable connection in order, as their PSNs are acknowledged (IBTA vol. 1 §9.7.5.1).
 */

import { QPS_SQD, STATUS_SUCCESS } from '../memory/ring/enums.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import type { Outstanding } from './outstanding.js';
import { SendCompletions } from './send-completions.js';
import type { QueuePairParts } from './transport.js';

const NOTHING_FAILED = -1;

export class WorkRequestCompletion {
  readonly #parts: QueuePairParts;
  readonly #sq: SendQueue;
  readonly #out: Outstanding;
  readonly #completions: SendCompletions;
  #failedIndex = NOTHING_FAILED;
  #failedStatus = STATUS_SUCCESS;

  constructor(parts: QueuePairParts, out: Outstanding) {
    this.#parts = parts;
    this.#sq = parts.sendQueue;
    this.#out = out;
    this.#completions = new SendCompletions(parts, parts.probe);
  }

  start(): void {
    this.#failedIndex = NOTHING_FAILED;
    this.#out.reset(this.#parts.attributes.sqPsn, this.#sq.consumer);
  }

  /** True when the work request at `index` failed while it was being sent: nothing is sent for it or after it. */
  hasFailed(index: number): boolean {
    return index === this.#failedIndex;
  }

  /** It completes with `status` once everything before it has. */
  fail(index: number, status: number): void {
    this.#failedIndex = index;
    this.#failedStatus = status;
    this.completeDone();
  }

  /** While draining, reports when nothing is left. */
  completeDone(): void {
    const out = this.#out;
    while (out.head !== out.started && out.head !== this.#failedIndex && out.isDone(out.head)) {
      // The accounts advance before the completion is written: a CQ that overruns stops the QP, which flushes the rest.
      const index = out.head;
      out.removeHead();
      this.#completions.complete(index, STATUS_SUCCESS);
    }
    if (out.head === this.#failedIndex) this.completeInError(this.#failedStatus, 0);
    else if (this.#parts.attributes.state === QPS_SQD && out.isIdle) {
      this.#parts.lifecycle.sendQueueDrained();
    }
  }

  /** The oldest work request fails: its real status, everything after it flushed. */
  completeInError(status: number, vendorError: number): void {
    this.#completions.completeInError(this.#out.head, status, vendorError);
    this.#parts.lifecycle.enterError();
  }

  flush(): void {
    this.#failedIndex = NOTHING_FAILED;
    this.#completions.flush();
    this.#out.reset(this.#out.newPsn, this.#sq.consumer);
  }

  discard(): void {
    this.#failedIndex = NOTHING_FAILED;
    this.#completions.discard();
    this.#out.reset(0, this.#sq.consumer);
  }
}
