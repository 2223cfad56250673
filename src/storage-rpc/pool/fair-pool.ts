/**
 * A buffer pool that clients share by turns. A client that keeps buffers without progress is reported while others
 * wait.
 */

import { type FairClient, type FairClientEvents, FairQueue } from '../../core/fair-queue.js';
import { type BufferLease, BufferPool, type BufferPoolOptions, pieceBytes, type Slab } from './buffer-pool.js';

/** The pool gives pieces of a few sizes, so that not all of its bytes can be used at once. */
export const POOL_SHARE = 0.75;

export interface PoolClient<S extends Slab> {
  lease(bytes: number): BufferLease<S> | Promise<BufferLease<S>>;
  /** What it has on loan is still to be released. */
  leave(): void;
}

export class FairPool<S extends Slab = Slab> {
  readonly pool: BufferPool<S>;
  readonly #queue: FairQueue;

  /** `groupPart`: of the clients of one group. */
  constructor(options: BufferPoolOptions<S> & { readonly bytesMax: number }, groupPart: number) {
    const { clock, bytesMax: poolBytesMax } = options;
    this.pool = new BufferPool(options);
    const bytesMax = poolBytesMax * POOL_SHARE;
    this.#queue = new FairQueue({ clock, bytesMax, groupBytesMax: bytesMax * groupPart });
  }

  get heldBytes(): number {
    return this.#queue.heldBytes;
  }

  join(events: FairClientEvents, group: string): PoolClient<S> {
    const client = this.#queue.join(events, group);
    return { lease: (bytes) => fairLease(client, this.pool, bytes), leave: () => client.leave() };
  }

  close(): Promise<void> {
    this.#queue.close();
    return this.pool.close();
  }
}
/** A buffer of a pool that clients share fairly. Rejects as the client and the pool do. */
export function fairLease<S extends Slab>(
  memory: FairClient,
  pool: BufferPool<S>,
  bytes: number,
): BufferLease<S> | Promise<BufferLease<S>> {
  const piece = pieceBytes(bytes);
  const release = () => memory.give(piece);
  const granted = memory.take(piece);
  const lease = granted === undefined ? pool.acquireNow(bytes, release) : undefined;
  return lease ?? leaseLater(pool, bytes, granted, release);
}

async function leaseLater<S extends Slab>(
  pool: BufferPool<S>,
  bytes: number,
  granted: Promise<void> | undefined,
  release: () => void,
): Promise<BufferLease<S>> {
  await granted;
  try {
    return await pool.acquire(bytes, release);
  } catch (error) {
    release();
    throw error;
  }
}
