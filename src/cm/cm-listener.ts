import type { Clock } from '../core/clock.js';
import { ConnectionLimiter } from '../core/connection-limiter.js';
import { RoceError } from '../core/errors.js';
import { WaitDeadline, WaitList, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { CmRequest } from './cm-request.js';
import { HandshakeRateLimiter, UNVALIDATED_PACE, VALIDATED_PACE } from './handshake-rate-limiter.js';

/** A request that waits in a listener. */
export interface WaitingRequest {
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** The peer is known to receive at its address. */
  readonly isValidated: boolean;
  /** It may still be accepted or rejected. */
  readonly isPending: boolean;
  /** Rejects the request. */
  reject(): void;
  /** Drops the request without an answer. @internal */
  evict(): void;
}

/**
 * A port that is listened on; made by {@link ConnectionManager.listen} for connections, and by
 * {@link ConnectionManager.listenForDatagrams} for requests of datagram services.
 */
export class CmListener<R extends WaitingRequest = CmRequest> implements AsyncDisposable {
  /** Port in RDMA_PS_TCP, or for datagrams in RDMA_PS_UDP; 1..65535. */
  readonly port: number;
  readonly #clock: Clock;
  readonly #onClose: () => void;
  readonly #unvalidatedLimiter = new HandshakeRateLimiter(UNVALIDATED_PACE);
  readonly #validatedLimiter = new HandshakeRateLimiter(VALIDATED_PACE);
  #cancelWake: () => void = () => {};
  /** `validated`: the address of the peer is. */
  readonly #requests: ConnectionLimiter<R, 'validated'>;
  readonly #waiting = new WaitList<void>();
  #closed = false;

  /** @internal */
  constructor(port: number, backlog: number, clock: Clock, onClose: () => void) {
    this.port = port;
    this.#clock = clock;
    this.#onClose = onClose;
    this.#requests = new ConnectionLimiter<R, 'validated'>({
      quotas: [{ states: ['pending', 'validated'], total: backlog }],
      evict: (request) => request.evict(),
    });
  }

  /**
   * Adds a pending request. Beyond the backlog, the oldest of the address that has the most is evicted, unvalidated
   * addresses first. False: all others rank higher than this one. @internal
   */
  push(request: R): boolean {
    this.#review();
    const requests = this.#requests;
    if (requests.exceeded('pending', request.remote) !== undefined) {
      const isEvicted = requests.evictOldest('pending') || (request.isValidated && requests.evictOldest('validated'));
      if (!isEvicted) return false;
    }
    requests.enter(request, stateOf(request), request.remote);
    this.#waiting.serve(() => {});
    return true;
  }

  /** Removes the requests that have ended, and updates which addresses are validated. */
  #review(): void {
    for (const request of this.#requests.connections) {
      if (request.isPending) this.#requests.enter(request, stateOf(request), request.remote);
      else this.#requests.leave(request);
    }
  }

  /**
   * The next request whose peer still waits. It does not wait for the set-ups of those before. Requests of one address
   * are taken at a bounded pace, a slower one while it is not validated. Rejects with ERR_ROCE_CLOSED when the listener
   * is closed, ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say.
   */
  async next(options?: WaitOptions): Promise<R> {
    const deadline = WaitDeadline.of('next', options, this.#clock);
    for (;;) {
      if (this.#closed) throw new RoceError('ERR_ROCE_CLOSED', `the listener on port ${this.port} is closed`);
      const request = this.#take();
      if (request !== undefined) return request;
      await this.#waiting.wait(deadline, undefined);
    }
  }

  /** When all wait for their pace, one waiter is woken when the first may continue. */
  #take(): R | undefined {
    this.#review();
    const now = this.#clock.nowNs();
    let opensNs = Number.POSITIVE_INFINITY;
    for (const request of this.#requests.connections) {
      const pace = request.isValidated ? this.#validatedLimiter : this.#unvalidatedLimiter;
      const requestNs = pace.opensNs(request.remote, now);
      opensNs = Math.min(opensNs, requestNs);
      if (requestNs > now) continue;
      this.#requests.leave(request);
      pace.spend(request.remote, now);
      return request;
    }
    this.#cancelWake();
    this.#cancelWake =
      opensNs === Number.POSITIVE_INFINITY
        ? () => {}
        : this.#clock.wakeAt(opensNs, () => this.#waiting.serve(() => {}));
    return undefined;
  }

  /**
   * Every request, until the listener is closed: `for await (const request of listener)` does the same without
   * options. They apply to the wait for each request; the errors are those of {@link next}.
   */
  requests(options?: WaitOptions): AsyncGenerator<R, void, undefined> {
    WaitDeadline.check('requests', options);
    return this.#requestsUntilClosed(options);
  }

  /** The same as {@link requests} without options. */
  [Symbol.asyncIterator](): AsyncGenerator<R, void, undefined> {
    return this.#requestsUntilClosed();
  }

  async *#requestsUntilClosed(options?: WaitOptions): AsyncGenerator<R, void, undefined> {
    while (!this.#closed) {
      try {
        yield await this.next(options);
      } catch (error) {
        if (this.#closed) return;
        throw error;
      }
    }
  }

  /** Rejects pending and all further requests. Connections stay. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelWake();
    this.#onClose();
    for (const request of this.#requests.connections) {
      this.#requests.leave(request);
      if (request.isPending) request.reject();
    }
    this.#waiting.serveAll(() => {});
  }

  /** The same as {@link close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

function stateOf({ isValidated }: WaitingRequest): 'pending' | 'validated' {
  return isValidated ? 'validated' : 'pending';
}
