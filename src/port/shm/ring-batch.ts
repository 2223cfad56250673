/**
 * The slots of a ring as a batch. Data that are borrowed are copied past the cache at once, and the ICRC is computed over where they come from: a sum over the slot would
 * fetch back what was just sent away.
 */

import type { IpAddress } from '../../packet/address.js';
import { TxBatch } from '../datagram.js';
import type { CopyChoice } from './copy-choice.js';
import type { StreamingCopy } from './streaming-copy.js';

/** A way to copy past the cache, and when to take it. */
export interface Copying {
  /** The way. */
  readonly streaming: StreamingCopy;
  /** Of the port: its rings share it. */
  readonly choice: Pick<CopyChoice, 'isPast' | 'begins' | 'ends'>;
}

/** Packets that make a batch a long one: others pay for the stores while more is written. Of a short one the reader waits for each line to come back from memory. */
const LONG_BATCH_PACKETS = 8;
/** Short batches, one after the other, until data are copied as usual. */
const SHORT_BATCHES_MAX = 4;

/** A batch whose slots are read by another process. */
export class RingBatch extends TxBatch {
  readonly #copying: Copying | undefined;
  #hasStreamed = false;
  #shortBatches = 0;

  /** `slab`: the ring's slots. Data are borrowed only where there is a `copying` past the cache, which chooses it. */
  constructor(slots: number, source: IpAddress, slab: Uint8Array<ArrayBuffer>, copying: Copying | undefined) {
    super(slots, source, 1, slab);
    this.#copying = copying;
  }

  /** The batch is going to be filled. */
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

  /** Behind the data, which stand in the slot. */
  override lastWordOffset(slot: number): number {
    return this.payloadOffset(slot) + this.borrowedAt[slot] + this.borrowedLengths[slot];
  }

  /** The batch has been filled: its slots, `packets` of them, may be shown to the reader. */
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
