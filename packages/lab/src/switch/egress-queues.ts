/**
 * The waiting frames of all ports: first in, first out, by port and priority. A queue is a chain of slots of the packet memory, so that its
 * length is bounded by admission alone.
 *
 * Invariant: bit p of `occupied[port]` is set exactly when queue (port, p) holds a frame.
 */

import { PRIORITIES } from 'rocev2/internal/packet';
import type { FramePool } from './frame-pool.js';

/** Queues (port, priority), numbered port * 8 + priority. */
export class EgressQueues {
  /** By port: bit p set when priority p has a frame. */
  readonly occupied: Uint8Array;
  /** By port. */
  readonly portPackets: Int32Array;
  /** By queue, port * 8 + priority: bytes of its frames. */
  readonly bytes: Float64Array;
  /** By queue: the most bytes since the watermarks were reset. */
  readonly bytesMax: Float64Array;
  /** By queue. */
  readonly packets: Int32Array;
  readonly #pool: FramePool;
  readonly #head: Int32Array;
  readonly #tail: Int32Array;

  constructor(ports: number, pool: FramePool) {
    const queues = ports * PRIORITIES;
    this.occupied = new Uint8Array(ports);
    this.portPackets = new Int32Array(ports);
    this.bytes = new Float64Array(queues);
    this.bytesMax = new Float64Array(queues);
    this.packets = new Int32Array(queues);
    this.#pool = pool;
    this.#head = new Int32Array(queues);
    this.#tail = new Int32Array(queues);
  }

  /** Appends a stored frame to the queue of its priority. */
  push(port: number, slot: number): void {
    const priority = this.#pool.priority[slot];
    const queue = port * PRIORITIES + priority;
    const bytes = this.bytes[queue] + this.#pool.lengths[slot];
    this.bytes[queue] = bytes;
    if (bytes > this.bytesMax[queue]) this.bytesMax[queue] = bytes;
    this.portPackets[port]++;
    if (this.packets[queue]++ === 0) {
      this.occupied[port] |= 1 << priority;
      this.#head[queue] = slot;
    } else this.#pool.next[this.#tail[queue]] = slot;
    this.#tail[queue] = slot;
  }

  /** Bytes of the oldest frame. Only of an occupied queue. */
  headBytes(port: number, priority: number): number {
    return this.#pool.lengths[this.#head[port * PRIORITIES + priority]];
  }

  /** Takes the oldest frame. Only from an occupied queue. */
  shift(port: number, priority: number): number {
    const queue = port * PRIORITIES + priority;
    const slot = this.#head[queue];
    this.#head[queue] = this.#pool.next[slot];
    this.bytes[queue] -= this.#pool.lengths[slot];
    this.portPackets[port]--;
    if (--this.packets[queue] === 0) this.occupied[port] &= ~(1 << priority);
    return slot;
  }

  /** Every maximum becomes what waits now. */
  resetWatermarks(): void {
    this.bytesMax.set(this.bytes);
  }
}
