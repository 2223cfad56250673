import { checkKind, checkObject, ifGiven, shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { RecvQueue, Sge } from '../memory/ring/work-queue.js';
import type { WrId } from './completion-queue.js';

/** A receive (`ibv_recv_wr`): room for one message. */
export interface RecvWorkRequest {
  /** Comes back in the completion. Default 0. */
  readonly wrId?: WrId | undefined;
  /** Where the message goes; may be empty for receives that only take immediate data. */
  readonly sges?: readonly Sge[] | undefined;
}

/** Cheap: it is asked for every receive. */
function isReceive(request: RecvWorkRequest): boolean {
  if (typeof request !== 'object' || request === null) return false;
  const { wrId = 0, sges } = request;
  return (typeof wrId === 'number' || typeof wrId === 'bigint') && (sges === undefined || Array.isArray(sges));
}

function refuseReceive(request: RecvWorkRequest): never {
  checkObject('the work request of postRecv', request, 'an object');
  const { wrId, sges } = request;
  ifGiven(sges, (value) => checkKind('sges', value, Array.isArray(value), 'a list of scatter/gather elements'));
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `wrId is ${shown(wrId)}`, 'it must be a number or a bigint');
}

export class ReceiveRing {
  queue: RecvQueue;
  readonly #wrIds: WrId[];
  /**
   * Numbers of wr_id places that are free; a shared queue completes in any order, so that the ring index will not do.
   */
  readonly #free: number[];

  constructor(queue: RecvQueue) {
    this.queue = queue;
    this.#wrIds = Array<WrId>(queue.depth).fill(0);
    this.#free = Array.from({ length: queue.depth }, (_, i) => queue.depth - 1 - i);
  }

  post(request: RecvWorkRequest): void {
    if (!isReceive(request)) refuseReceive(request);
    const cookie = this.#free.at(-1);
    if (cookie === undefined || this.outstanding >= this.queue.depth) {
      throw new RoceError(
        'ERR_ROCE_QUEUE_FULL',
        `the receive queue holds ${this.queue.depth} work requests, none of them done`,
        'poll the completion queue, or make the queue deeper',
      );
    }
    const index = this.queue.producer;
    this.queue.write(index, cookie, request.sges ?? []);
    this.#free.pop();
    this.#wrIds[cookie] = request.wrId ?? 0;
    this.queue.producer = (index + 1) >>> 0;
  }

  /** Receives that were posted and are not done. */
  get outstanding(): number {
    return this.#wrIds.length - this.#free.length;
  }

  /** Posts into `queue` from now on, which continues the one before and holds what is outstanding. */
  continueIn(queue: RecvQueue): void {
    queue.producer = this.queue.producer;
    while (this.#wrIds.length < queue.depth) this.#free.push(this.#wrIds.push(0) - 1);
    this.queue = queue;
  }

  done(cookie: number): WrId {
    this.#free.push(cookie);
    return this.#wrIds[cookie];
  }

  clear(): void {
    this.#free.length = 0;
    for (let i = this.#wrIds.length - 1; i >= 0; i--) this.#free.push(i);
  }
}
