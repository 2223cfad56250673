import type { FairClient } from '../../core/fair-queue.js';
import { type BufferLease, type BufferPool, pieceBytes, type Slab } from './buffer-pool.js';

/** The pool gives pieces of a few sizes, so that not all of its bytes can be used at once. */
export const POOL_SHARE = 0.75;

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
