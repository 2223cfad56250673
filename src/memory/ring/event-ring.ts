/**
 * The event ring: NIC to application notices {type, id}, 8 bytes each. When full, the newest is lost and the
 * application is notified, because answers and completions may wait.
 */

import { createRingMemory, Ring } from './ring.js';

/** Enough for one completion notice per CQ and bursts of async events between two iterations of the event loop. */
export const EVENT_DEPTH = 4096;

/** Set when the ring was full and an event was lost. */
const WORD_LOST = 5;
const ELEMENT_BYTES = 8;

export interface RingEvent {
  type: number;
  id: number;
}

export class EventRing extends Ring {
  /** The application's side over new memory. `depth` is rounded up to a power of two. */
  static create(allocate: (bytes: number) => ArrayBufferLike, depth: number): EventRing {
    return new EventRing(createRingMemory(allocate, depth, ELEMENT_BYTES));
  }

  constructor(memory: ArrayBufferLike) {
    super(memory, ELEMENT_BYTES);
  }

  /** False when the ring is full: the event is lost, and {@link takeLost} reports it. */
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

  /** Call when the ring is empty. */
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
