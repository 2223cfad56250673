/**
 * Data sent from registered memory without a copy. A change between the checksum and the system call costs the packet:
 * its receiver drops it. Both happen in one NIC poll, so only another thread can cause that; memory of this thread is
 * always safe. Other memory may be borrowed only while the request is not complete (ibv_post_send(3)), and only if no
 * peer can write to it: see `Segmenter.trustsProgram`. READ responses are copied.
 */

import type { MemoryRange } from '../memory/memory-range.js';
import type { TxBatch } from '../port/datagram.js';

/** Below this length, a copy costs less than two more pieces of a datagram. */
const BORROWED_BYTES_MIN = 2048;

/**
 * False if the data has to be copied: the port does not support it, the data is short, or has a pad. The packet must
 * have no trailer.
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
