/**
 * Data that leave from where they are registered, without a copy. The ICRC covers what is sent, so nothing may change them between the sum and the system
 * call: both happen in one turn of the NIC, and only another thread could. A program that changes what it has posted changes whole packets, as with
 * an adapter.
 */

import type { MemoryRange } from '../memory/memory-range.js';
import type { TxBatch } from '../port/datagram.js';

/** Below, a copy costs less than two more pieces of a datagram. */
const BORROWED_BYTES_MIN = 2048;

/**
 * Lets the packet in the batch's next slot have `length` bytes of `range`, from `skip` on, behind its `headerBytes`. False where they have to be copied: ports that
 * do not do it, memory of several threads, short data, and data with a pad. The packet must have no trailer.
 */
export function borrowPayload(
  batch: TxBatch,
  range: MemoryRange,
  skip: number,
  length: number,
  headerBytes: number,
): boolean {
  if (!batch.mayBorrow || length < BORROWED_BYTES_MIN || (length & 3) !== 0 || !range.isOfThisThread) return false;
  const { bytes } = range;
  const offset = range.offset + skip;
  // An array whose memory was given to another thread is empty.
  if (offset + length > bytes.length) return false;
  batch.borrow(headerBytes, bytes, offset, length);
  return true;
}
