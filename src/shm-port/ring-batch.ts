/**
 * The slots of a ring as a batch. Data that are borrowed are copied past the cache at once, and the ICRC is computed over where they come from: a sum over the slot would
 * fetch back what was just sent away.
 */

import type { IpAddress } from '../packet/address.js';
import { TxBatch } from '../port/datagram.js';
import type { StreamingCopy } from './streaming-copy.js';

/** A batch whose slots are read by another process. */
export class RingBatch extends TxBatch {
  readonly #streaming: StreamingCopy | undefined;
  #hasStreamed = false;

  /** `slab`: the ring's slots. Data are borrowed only where there is a `streaming` copy. */
  constructor(slots: number, source: IpAddress, slab: Uint8Array<ArrayBuffer>, streaming: StreamingCopy | undefined) {
    super(slots, source, 1, slab);
    this.#streaming = streaming;
    this.mayBorrow = streaming !== undefined;
  }

  override borrow(at: number, from: Uint8Array, offset: number, length: number): void {
    super.borrow(at, from, offset, length);
    this.#streaming!.copy(this.slab, this.payloadOffset(this.count) + at, from, offset, length);
    this.#hasStreamed = true;
  }

  /** Behind the data, which stand in the slot. */
  override lastWordOffset(slot: number): number {
    return this.payloadOffset(slot) + this.borrowedAt[slot] + this.borrowedLengths[slot];
  }

  /** The batch has been filled: its slots may be shown to the reader. */
  settle(): void {
    if (!this.#hasStreamed) return;
    this.#hasStreamed = false;
    this.giveBack();
    this.#streaming!.drain();
  }
}
