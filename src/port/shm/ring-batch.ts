/**
 * Borrowed data are copied with non-temporal stores at once, and the ICRC is computed over their source: a CRC over the
 * slot would fetch it back into the cache.
 */

import type { IpAddress } from '../../packet/address.js';
import { TxBatch } from '../datagram.js';
import type { CopyChoice } from './copy-choice.js';
import type { StreamingCopy } from './streaming-copy.js';

export interface Copying {
  readonly streaming: StreamingCopy;
  readonly choice: Pick<CopyChoice, 'isPast' | 'begins' | 'ends'>;
}

/**
 * A batch with this many packets is long: the stores overlap with further writes. In a short batch the reader waits for
 * each line from memory.
 */
const LONG_BATCH_PACKETS = 8;
/** Short batches, one after the other, until data are copied as usual. */
const SHORT_BATCHES_MAX = 4;

export class RingBatch extends TxBatch {
  readonly #copying: Copying | undefined;
  #hasStreamed = false;
  #shortBatches = 0;

  /** Data are borrowed only with a `copying` that bypasses the cache. */
  constructor(slots: number, source: IpAddress, slab: Uint8Array<ArrayBuffer>, copying: Copying | undefined) {
    super(slots, source, 1, slab);
    this.#copying = copying;
  }

  begin(): void {
    const copying = this.#copying;
    if (copying === undefined) return;
    this.mayBorrow = this.#shortBatches < SHORT_BATCHES_MAX && copying.choice.isPast;
    copying.choice.begins();
  }

  override borrow(at: number, from: Uint8Array, offset: number, length: number): void {
    super.borrow(at, from, offset, length);
    this.#copying!.streaming.copy(this.slab, this.payloadOffset(this.count) + at, from, offset, length);
    this.#hasStreamed = true;
  }

  override lastWordOffset(slot: number): number {
    return this.payloadOffset(slot) + this.borrowedAt[slot] + this.borrowedLengths[slot];
  }

  settle(packets: number): void {
    const isLong = packets >= LONG_BATCH_PACKETS;
    this.#shortBatches = isLong ? 0 : this.#shortBatches + 1;
    if (this.#hasStreamed) {
      this.#hasStreamed = false;
      this.giveBack();
      this.#copying!.streaming.drain();
    }
    if (isLong) this.#copying?.choice.ends(packets);
  }
}
