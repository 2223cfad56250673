/**
 * The event ring: NIC to application notices {type, id}, 8 bytes each. Full means the application stopped reading: the newest is lost, and the
 * application told so, because answers and completions may wait that nobody will name to it.
 */

import { createRingMemory, Ring } from './ring.js';

/** Enough for one completion notice per CQ and bursts of async events between two turns of the event loop. */
export const EVENT_DEPTH = 4096;

/** Set when an event found no room. */
const WORD_LOST = 5;

/** One notice, reused by both sides. */
export interface RingEvent {
  /** One of the EVENT_ numbers. */
  type: number;
  /** QPN, CQ or SRQ handle; unused for command notices. */
  id: number;
}

/** Both sides of the notices of one NIC. */
export class EventRing extends Ring {
  /** The application's side over new memory. `depth` is rounded up to a power of two. */
  static create(allocate: (bytes: number) => ArrayBufferLike, depth: number): EventRing {
    return new EventRing(createRingMemory(allocate, depth, 8));
  }

  /** NIC side. False when the ring is full: the event is lost, and {@link takeLost} says so. */
  push(type: number, id: number): boolean {
    const index = this.producer;
    if ((index - this.consumer) >>> 0 >= this.depth) {
      Atomics.store(this.header, WORD_LOST, 1);
      return false;
    }
    const o = this.offsetOf(index);
    this.view.setUint32(o, type, true);
    this.view.setUint32(o + 4, id, true);
    this.producer = (index + 1) >>> 0;
    return true;
  }

  /** Application side: true (once) when events were lost. To be asked when the ring is empty. */
  takeLost(): boolean {
    return Atomics.load(this.header, WORD_LOST) !== 0 && Atomics.exchange(this.header, WORD_LOST, 0) !== 0;
  }

  /** Application side: takes the oldest event into `out`; false when there is none. */
  take(out: RingEvent): boolean {
    const index = this.consumer;
    if (index === this.producer) return false;
    const o = this.offsetOf(index);
    out.type = this.view.getUint32(o, true);
    out.id = this.view.getUint32(o + 4, true);
    this.consumer = (index + 1) >>> 0;
    return true;
  }
}
