import type { CompletionRing, Cqe } from '../memory/ring/completion-ring.js';
import {
  EVENT_COMPLETION,
  EVENT_CQ_ERR,
  EVENT_SRQ_LIMIT_REACHED,
  STATUS_SUCCESS,
  WC_FLAG_SOLICITED,
} from '../memory/ring/enums.js';
import type { RecvQueue, RecvWqe } from '../memory/ring/work-queue.js';
import type { CompletionSink, ReceiveSource } from '../qp/host.js';

export class NicCompletionQueue implements CompletionSink {
  readonly handle: number;
  #ring: CompletionRing;
  /** QPs that complete into it; it cannot be destroyed before them. */
  users = 0;
  /** It has overrun: nothing more is added (IBTA §11.6.3.1, CQ error). */
  broken = false;
  readonly #raise: (type: number, id: number) => void;
  readonly #onOverrun: (cq: NicCompletionQueue) => void;

  constructor(
    handle: number,
    ring: CompletionRing,
    raise: (type: number, id: number) => void,
    onOverrun: (cq: NicCompletionQueue) => void,
  ) {
    this.handle = handle;
    this.#ring = ring;
    this.#raise = raise;
    this.#onOverrun = onOverrun;
  }

  complete(cqe: Cqe): void {
    if (this.broken) return;
    if (!this.#ring.push(cqe)) {
      this.broken = true;
      this.#raise(EVENT_CQ_ERR, this.handle);
      this.#onOverrun(this);
      return;
    }
    const solicited = (cqe.flags & WC_FLAG_SOLICITED) !== 0 || cqe.status !== STATUS_SUCCESS;
    if (this.#ring.disarmIf(solicited)) this.#raise(EVENT_COMPLETION, this.handle);
  }

  /** Throws ERR_ROCE_LIMIT if it holds fewer completions than were not taken. */
  resize(ring: CompletionRing): void {
    ring.continue(this.#ring);
    this.#ring = ring;
  }
}

export class OwnReceives implements ReceiveSource {
  readonly shared = false;
  readonly #ring: RecvQueue;

  constructor(ring: RecvQueue) {
    this.#ring = ring;
  }

  take(out: RecvWqe): boolean {
    return this.#ring.take(out);
  }
}

export class NicSharedReceiveQueue implements ReceiveSource {
  readonly shared = true;
  readonly handle: number;
  readonly pd: number;
  users = 0;
  /** When fewer elements than this are left, SRQ_LIMIT_REACHED is raised once; 0: off. */
  limit = 0;
  #ring: RecvQueue;
  readonly #raise: (type: number, id: number) => void;

  constructor(handle: number, pd: number, ring: RecvQueue, raise: (type: number, id: number) => void) {
    this.handle = handle;
    this.pd = pd;
    this.#ring = ring;
    this.#raise = raise;
  }

  /** Throws what {@link RecvQueue.copyFrom} throws. */
  resize(ring: RecvQueue): void {
    const { consumer } = this.#ring;
    ring.copyFrom(this.#ring, consumer);
    ring.consumer = consumer;
    this.#ring = ring;
  }

  take(out: RecvWqe): boolean {
    const taken = this.#ring.take(out);
    if (this.limit > 0 && this.#ring.fill < this.limit) {
      this.limit = 0;
      this.#raise(EVENT_SRQ_LIMIT_REACHED, this.handle);
    }
    return taken;
  }
}
