/**
 * What a server posts on the queue pair of a client, as far as that has room and in order: a response must not overtake
 * its data. Work in flight is only given up once the queue pair is gone: until then a READ may still write to its
 * memory.
 */

import type { Clock } from '../../core/clock.js';
import type { Permits } from '../../core/permits.js';
import type { QueuePair } from '../../verbs/queue-pair.js';
import type { SendWorkRequest } from '../../verbs/send-work-request.js';

/** It gets its number when it is posted. */
export type NumberedRequest = SendWorkRequest & { wrId: number };

interface Post {
  readonly request: NumberedRequest;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface ServerSendsInit {
  readonly qp: QueuePair;
  readonly clock: Clock;
  /** READs of the queue pair. */
  readonly reads: Permits;
  /** Bytes of the READs of all queue pairs. */
  readonly pulls: Permits;
  /** Closes the queue pair, then calls {@link ServerSends.giveUp}. */
  readonly close: () => Promise<void>;
}

const NOTHING = () => {};

/** It posts from `start` on. */
export class ServerSends {
  /** Once it is set, nothing more is posted. */
  failure: Error | undefined;
  readonly #init: ServerSendsInit;
  readonly #posted = new Map<number, Post>();
  readonly #waitingForRoom: Post[] = [];
  #nextWrId = 0;
  #isStarted = false;
  #movedNs: number;

  constructor(init: ServerSendsInit) {
    this.#init = init;
    this.#movedNs = init.clock.nowNs();
  }

  /**
   * Since when nothing that is in flight has been done, as with a peer without receives; Infinity: nothing is in
   * flight.
   */
  get stuckSinceNs(): number {
    return this.#posted.size === 0 ? Number.POSITIVE_INFINITY : this.#movedNs;
  }

  start(): void {
    this.#isStarted = true;
    this.#postWaiting();
  }

  /** Rejects when the queue pair is gone, not before. */
  post(request: NumberedRequest): Promise<void> {
    return new Promise((resolve, reject) => this.#postSoon({ request, resolve, reject }));
  }

  /** For a request whose completion, and whose failure, is that of a later one. */
  postUnsignaled(request: NumberedRequest & { signaled: false }): void {
    this.#postSoon({ request, resolve: NOTHING, reject: NOTHING });
  }

  /** Posts a READ when there are permits for it. */
  async read(request: NumberedRequest & { opcode: 'RDMA_READ' }, bytes: number): Promise<void> {
    const { reads, pulls } = this.#init;
    await reads.take(1);
    try {
      await pulls.take(bytes);
      try {
        await this.post(request);
      } finally {
        pulls.give(bytes);
      }
    } finally {
      reads.give(1);
    }
  }

  onDone(wrId: number): void {
    this.#posted.get(wrId)?.resolve();
    this.#posted.delete(wrId);
    this.#movedNs = this.#init.clock.nowNs();
    this.#postWaiting();
  }

  /** Rejects all that has not been done, with the failure. */
  giveUp(): void {
    for (const { reject } of [...this.#posted.values(), ...this.#waitingForRoom.splice(0)]) reject(this.failure!);
    this.#posted.clear();
  }

  #postSoon(post: Post): void {
    const { failure } = this;
    if (failure !== undefined) {
      void this.#init.close().then(() => post.reject(failure), post.reject);
      return;
    }
    this.#waitingForRoom.push(post);
    this.#postWaiting();
  }

  #postWaiting(): void {
    const { qp } = this.#init;
    while (this.#waitingForRoom.length > 0 && this.#isStarted && this.failure === undefined && qp.sendRoom > 0) {
      const post = this.#waitingForRoom.shift()!;
      const { request } = post;
      request.wrId = this.#nextWrId;
      this.#nextWrId = (this.#nextWrId + 1) >>> 0;
      if (request.signaled !== false) {
        if (this.#posted.size === 0) this.#movedNs = this.#init.clock.nowNs();
        this.#posted.set(request.wrId, post);
      }
      qp.postSend(request);
    }
  }
}
