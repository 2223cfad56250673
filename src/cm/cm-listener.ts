/** Incoming requests of one port, in the order they came (`rdma_listen`, `rdma_get_cm_event`). */

import type { Clock } from '../core/clock.js';
import { RoceError } from '../core/errors.js';
import { WAIT_OPTIONS, WaitDeadline, WaitList, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { CmRequest } from './cm-request.js';
import { Crowd } from './crowd.js';
import { PROVED_PACE, SetUpPace, UNPROVED_PACE } from './set-up-pace.js';

/** A request that waits in a listener. */
export interface WaitingRequest {
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** The peer has proved that it receives at its address. */
  readonly hasProved: boolean;
  /** It may still be accepted or rejected. */
  readonly isPending: boolean;
  /** Rejects the request. */
  reject(): void;
  /** Drops the request without an answer. @internal */
  crowdOut(): void;
}

/**
 * A port that is listened on; made by {@link ConnectionManager.listen} for connections, and by {@link ConnectionManager.listenForDatagrams} for
 * requests of datagram services.
 */
export class CmListener<R extends WaitingRequest = CmRequest> implements AsyncDisposable {
  /** Port in RDMA_PS_TCP, or for datagrams in RDMA_PS_UDP; 1..65535. */
  readonly port: number;
  readonly #backlog: number;
  readonly #clock: Clock;
  readonly #onClose: () => void;
  readonly #unprovedPace = new SetUpPace(UNPROVED_PACE);
  readonly #provedPace = new SetUpPace(PROVED_PACE);
  #cancelWake: () => void = () => {};
  #requests: R[] = [];
  readonly #waiting = new WaitList<void>();
  #closed = false;

  /** @internal */
  constructor(port: number, backlog: number, clock: Clock, onClose: () => void) {
    this.port = port;
    this.#backlog = backlog;
    this.#clock = clock;
    this.#onClose = onClose;
  }

  /**
   * One more request that nobody has taken yet. Beyond the backlog, one of a peer that has proved nothing makes room: the oldest of the address that has
   * the most. False: all have proved more than this one. @internal
   */
  push(request: R): boolean {
    this.#requests = this.#requests.filter(({ isPending }) => isPending);
    if (this.#requests.length >= this.#backlog) {
      const first = this.#whoMakesRoom(request.hasProved);
      if (first === undefined) return false;
      this.#requests.splice(this.#requests.indexOf(first), 1);
      first.crowdOut();
    }
    this.#requests.push(request);
    this.#waiting.serve(() => {});
    return true;
  }

  #whoMakesRoom(hasProved: boolean): R | undefined {
    const unproved = new Crowd<R>();
    const proved = new Crowd<R>();
    for (const waiting of this.#requests) (waiting.hasProved ? proved : unproved).add(waiting);
    return unproved.oldestOfFullest() ?? (hasProved ? proved.oldestOfFullest() : undefined);
  }

  /**
   * The next request whose peer still waits. It does not wait for the set-ups of those before. Requests of one address are taken at a bounded
   * pace, a slower one while its peers have proved nothing. Rejects with ERR_ROCE_CLOSED when the listener is closed, ERR_ROCE_ABORTED or
   * ERR_ROCE_TIMEOUT as the options say.
   */
  async next(options?: WaitOptions): Promise<R> {
    const deadline = WaitDeadline.of('next', options, WAIT_OPTIONS, this.#clock);
    for (;;) {
      if (this.#closed) throw new RoceError('ERR_ROCE_CLOSED', `the listener on port ${this.port} is closed`);
      const request = this.#take();
      if (request !== undefined) return request;
      await this.#waiting.wait(deadline, undefined); // A request, or the end of the listener.
    }
  }

  /** The oldest request that may be taken now. Where all have to wait for their pace, somebody who waits is woken when the first may. */
  #take(): R | undefined {
    this.#requests = this.#requests.filter(({ isPending }) => isPending);
    const now = this.#clock.nowNs();
    let opensNs = Number.POSITIVE_INFINITY;
    for (const [k, request] of this.#requests.entries()) {
      const pace = request.hasProved ? this.#provedPace : this.#unprovedPace;
      const requestNs = pace.opensNs(request.remote, now);
      opensNs = Math.min(opensNs, requestNs);
      if (requestNs > now) continue;
      this.#requests.splice(k, 1);
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

  /** Every request, until the listener is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<R, void, undefined> {
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
    this.#cancelWake();
    this.#onClose();
    for (const request of this.#requests.splice(0)) if (request.isPending) request.reject();
    this.#waiting.serveAll(() => {});
  }

  /** The same as {@link close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
