/**
 * Doorbells for a NIC in another thread: the QPNs whose queues have new elements. One thread rings, one drains.
 *
 * A QP that rings again while its last doorbell still waits adds nothing; more waiting doorbells than the ring holds
 * become one for all.
 */

import { createRingMemory, Ring } from './ring.js';

/** Set when the ring was full: every QP has to be checked. */
const WORD_ALL = 5;
const ELEMENT_BYTES = 4;

export class DoorbellRing extends Ring {
  /** The application's side over new memory. `depth` is rounded up to a power of two. */
  static create(allocate: (bytes: number) => ArrayBufferLike, depth: number): DoorbellRing {
    return new DoorbellRing(createRingMemory(allocate, depth, ELEMENT_BYTES));
  }

  constructor(memory: ArrayBufferLike) {
    super(memory, ELEMENT_BYTES);
  }

  ring(qpn: number): void {
    const index = this.producer;
    const waiting = (index - this.consumer) >>> 0;
    if (waiting > 0 && this.view.getUint32(this.offsetOf(index - 1), true) === qpn) return;
    if (waiting >= this.depth) {
      Atomics.store(this.header, WORD_ALL, 1);
      return;
    }
    this.view.setUint32(this.offsetOf(index), qpn, true);
    this.producer = (index + 1) >>> 0;
  }

  get isRinging(): boolean {
    return this.fill > 0 || Atomics.load(this.header, WORD_ALL) !== 0;
  }

  /** An element is released before its QP is served, so that a later doorbell counts as a new one. */
  drain(one: (qpn: number) => void, all: () => void): void {
    let index = this.consumer;
    // A ring holds no more: the thread that rings may be of another program, with a wrong index.
    for (let left = this.depth; left > 0 && index !== this.producer; left--, index = (index + 1) >>> 0) {
      const qpn = this.view.getUint32(this.offsetOf(index), true);
      this.consumer = (index + 1) >>> 0;
      one(qpn);
    }
    if (Atomics.load(this.header, WORD_ALL) !== 0 && Atomics.exchange(this.header, WORD_ALL, 0) !== 0) all();
  }
}
