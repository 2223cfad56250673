/** Shared receive queues (IBTA vol. 1 §10.2.9): one pool of receives for many QPs. */

import { checkWhole } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { PromiseMutex } from '../core/promise-mutex.js';
import { RING_DEPTH_MAX } from '../memory/ring/ring.js';
import { RecvQueue, SGE_COUNT_MAX } from '../memory/ring/work-queue.js';
import type { RdmaDevice } from './device.js';
import type { ProtectionDomain } from './protection-domain.js';
import { ReceiveRing, type RecvWorkRequest } from './receive-ring.js';
import { Resource } from './resource.js';

/** A shared receive queue (`ibv_srq`), made by {@link ProtectionDomain.createSrq}. */
export class SharedReceiveQueue extends Resource {
  override readonly closeRank = 3;
  /** Unique among the objects of the device. */
  readonly kind = 'SRQ';
  /** The device that it belongs to. */
  readonly device: RdmaDevice;
  /** The number that the NIC gave it. */
  readonly handle: number;
  /** @internal */
  readonly receives: ReceiveRing;
  #memoryId: number;
  readonly #resizing = new PromiseMutex();

  private constructor(pd: ProtectionDomain, handle: number, receives: ReceiveRing, memoryId: number) {
    super(pd);
    this.device = pd.device;
    this.handle = handle;
    this.receives = receives;
    this.#memoryId = memoryId;
  }

  /** @internal */
  static async create(pd: ProtectionDomain, depth: number, maxSge: number): Promise<SharedReceiveQueue> {
    const { device } = pd;
    checkWhole('depth', depth, 1, RING_DEPTH_MAX);
    checkWhole('maxSge', maxSge, 1, SGE_COUNT_MAX);
    const queue = RecvQueue.create((bytes) => device.memoryOf(bytes), depth, maxSge);
    const memoryId = device.link.attach(queue.memory);
    try {
      const { srq } = await device.command('createSrq', { pd: pd.handle, memory: memoryId });
      const object = new SharedReceiveQueue(pd, srq, new ReceiveRing(queue), memoryId);
      device.track(object);
      return object;
    } catch (error) {
      device.link.detach(memoryId);
      throw error;
    }
  }

  /**
   * Posts a receive for the first queue pair that needs one. Throws ERR_ROCE_QUEUE_FULL, ERR_ROCE_LIMIT for more
   * elements than the queue takes, or ERR_ROCE_OUT_OF_RANGE.
   */
  postRecv(request: RecvWorkRequest): void {
    this.receives.post(request);
  }

  /** `SRQ_LIMIT_REACHED` is raised once when fewer than `limit` receives are left. */
  async setLimit(limit: number): Promise<void> {
    await this.device.command('modifySrq', { srq: this.handle, limit });
  }

  /** The limit that is armed; 0 after it was reached (`ibv_query_srq`). */
  async queryLimit(): Promise<number> {
    return (await this.device.command('querySrq', { srq: this.handle })).limit;
  }

  /** Receives that it can hold. */
  get depth(): number {
    return this.receives.queue.depth;
  }

  /** Scatter/gather elements that a receive may have. */
  get maxSge(): number {
    return this.receives.queue.maxSge;
  }

  /**
   * Changes how many receives it can hold (`ibv_modify_srq`), at least `depth`; those that were posted stay. Rejects
   * with ERR_ROCE_LIMIT if more are posted and not done, ERR_ROCE_OUT_OF_RANGE for a depth that createSrq does not
   * take.
   */
  resize(depth: number): Promise<void> {
    return this.#resizing.run(() => this.#resize(depth));
  }

  async #resize(depth: number): Promise<void> {
    checkWhole('depth', depth, 1, RING_DEPTH_MAX);
    const { device, receives } = this;
    const queue = RecvQueue.create((bytes) => device.memoryOf(bytes), depth, receives.queue.maxSge);
    if (receives.outstanding > queue.depth) {
      const text = `${receives.outstanding} receives are posted and not done, ${queue.depth} would fit`;
      throw new RoceError('ERR_ROCE_LIMIT', text);
    }
    const memory = device.link.attach(queue.memory);
    receives.continueIn(queue);
    await device.command('resizeSrq', { srq: this.handle, memory });
    device.link.detach(this.#memoryId);
    this.#memoryId = memory;
  }

  protected override async release(): Promise<void> {
    await this.#resizing.settled;
    await this.device.command('destroySrq', { srq: this.handle });
    this.device.link.detach(this.#memoryId);
    this.device.untrack(this);
  }
}
