/** Incoming requests of one port, in the order they came (`rdma_listen`, `rdma_get_cm_event`). */

import { RoceError } from '../core/errors.js';
import type { CmRequest } from './cm-request.js';

/** A port that is listened on; made by {@link ConnectionManager.listen}. */
export class CmListener implements AsyncDisposable {
  /** Of RDMA_PS_TCP, 1..65535. */
  readonly port: number;
  readonly #backlog: number;
  readonly #onClose: () => void;
  readonly #requests: CmRequest[] = [];
  readonly #waiting: Array<() => void> = [];
  #closed = false;

  /** @internal */
  constructor(port: number, backlog: number, onClose: () => void) {
    this.port = port;
    this.#backlog = backlog;
    this.#onClose = onClose;
  }

  /** Room for one more request that nobody has taken yet. @internal */
  get hasRoom(): boolean {
    return this.#requests.length < this.#backlog;
  }

  /** @internal */
  push(request: CmRequest): void {
    this.#requests.push(request);
    this.#waiting.shift()?.();
  }

  /** The next request whose peer still waits. Rejects with ERR_ROCE_CLOSED when the listener is closed. */
  async next(): Promise<CmRequest> {
    for (;;) {
      if (this.#closed) throw new RoceError('ERR_ROCE_CLOSED', `nobody listens on port ${this.port} any more`);
      const request = this.#requests.shift();
      if (request?.isPending === true) return request;
      if (request === undefined) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Every request, until the listener is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<CmRequest, void, undefined> {
    while (!this.#closed) {
      try {
        yield await this.next();
      } catch (error) {
        if (this.#closed) return;
        throw error;
      }
    }
  }

  /** Refuses what nobody has taken, and everything from now on. Connections stay. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onClose();
    for (const request of this.#requests.splice(0)) if (request.isPending) request.reject();
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** The same as {@link close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
