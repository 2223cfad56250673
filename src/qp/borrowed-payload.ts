/**
 * Data that leave from where they are registered, without a copy. The ICRC covers what is sent, so a change between the sum and the system call, or the copy into a ring,
 * costs the packet: its receiver drops it. Both happen in one turn of the NIC, so only another thread can do that.
 *
 * Whoever asks has to know that nobody does. Memory of this thread alone stays as it is. Of other memory, only data of a request that is not complete may be
 * borrowed ("The buffers used by a WR can only be safely reused after WR the request is fully executed and a work completion has been retrieved", ibv_post_send(3)), where no peer can write them:
 * see `Segmenter.trustsProgram`. What a peer READs is changed by its owner whenever it likes, and is copied.
 */

import type { MemoryRange } from '../memory/memory-range.js';
import type { TxBatch } from '../port/datagram.js';

/** Below, a copy costs less than two more pieces of a datagram. */
const BORROWED_BYTES_MIN = 2048;

/**
 * Lets the packet in the batch's next slot have `length` bytes of `range`, from `skip` on, behind its `headerBytes`. False where they have to be copied: ports that
 * do not do it, short data, and data with a pad. The packet must have no trailer.
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
