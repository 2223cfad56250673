/**
 * The receive work request in use and the completions of receives: taken from the queue pair's own receive queue or an
 * SRQ.
 */

import { Cqe } from '../memory/ring/completion-ring.js';
import { COUNTER } from '../memory/ring/counters.js';
import { STATUS_SUCCESS, STATUS_WR_FLUSH_ERR, WC_RECV } from '../memory/ring/enums.js';
import { RecvWqe } from '../memory/ring/work-queue.js';
import type { QueuePairOptions } from './nic-queue-pair.js';

export class ReceiveCompletions {
  readonly #options: QueuePairOptions;
  readonly #cqe = new Cqe();
  readonly wqe = new RecvWqe();

  constructor(options: QueuePairOptions) {
    this.#options = options;
    this.#cqe.isReceive = true;
  }

  get isBound(): boolean {
    return this.wqe.bound;
  }

  /** False: none is posted. */
  bind(): boolean {
    return this.wqe.bound || this.#options.receives.take(this.wqe);
  }

  /** `flags` decide whether `immediate` is immediate data or the invalidated key. */
  complete(status: number, opcode: number, flags: number, byteCount: number, immediate: number, sourceQpn = 0): void {
    const { host, qpn, recvCq } = this.#options;
    if (status !== STATUS_SUCCESS) host.counters[COUNTER.resp_cqe_error]++;
    this.wqe.bound = false;
    const cqe = this.#cqe;
    cqe.index = this.wqe.cookie;
    cqe.qpn = qpn;
    cqe.status = status;
    cqe.opcode = opcode;
    cqe.flags = flags;
    cqe.byteCount = byteCount;
    cqe.immediate = immediate;
    cqe.sourceQpn = sourceQpn;
    recvCq.complete(cqe);
  }

  fail(status: number): void {
    if (this.wqe.bound) this.complete(status, WC_RECV, 0, 0, 0);
  }

  /** Completes the element in use, and those posted to the queue pair's own queue, with WR_FLUSH_ERR. */
  flush(): void {
    this.fail(STATUS_WR_FLUSH_ERR);
    if (this.#options.receives.shared) return;
    while (this.#options.receives.take(this.wqe)) this.fail(STATUS_WR_FLUSH_ERR);
  }

  /** Discards posted receives without completions; an SRQ gets the element in use back. */
  discard(): void {
    const { receives } = this.#options;
    if (receives.shared) {
      this.fail(STATUS_WR_FLUSH_ERR);
      return;
    }
    while (receives.take(this.wqe));
    this.wqe.bound = false;
  }
}
