/**
 * Data sent from registered memory without a copy. A change between the checksum and the system call costs the packet:
 * its receiver drops it. Both happen in one NIC poll, so only another thread can cause that, and memory of this thread
 * is always safe. Other memory may only be borrowed for a request that is not complete ("The buffers used by a WR can
 * only be safely reused after WR the request is fully executed and a work completion has been retrieved",
 * ibv_post_send(3)) and that no peer can write: see `Segmenter.trustsProgram`. READ responses are copied.
 */

import type { MemoryRange } from '../memory/memory-range.js';
import type { TxBatch } from '../port/datagram.js';

/** Below, a copy costs less than two more pieces of a datagram. */
const BORROWED_BYTES_MIN = 2048;

/**
 * False where they have to be copied: ports that do not do it, short data, and data with a pad. The packet must have no
 * trailer.
 */
export function borrowPayload(
  batch: TxBatch,
  range: MemoryRange,
  skip: number,
  length: number,
  headerBytes: number,
): boolean {
  if (!batch.mayBorrow || length < BORROWED_BYTES_MIN || (length & 3) !== 0) return false;
  const { bytes } = range;
  const offset = range.offset + skip;
  // An array whose memory was given to another thread is empty.
  if (offset + length > bytes.length) return false;
  batch.borrow(headerBytes, bytes, offset, length);
  return true;
}
