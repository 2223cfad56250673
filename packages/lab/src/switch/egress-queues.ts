/**
 * A queue is a chain of slots of the packet memory, so that its length is bounded by admission alone. Invariant: bit p
 * of `occupied[port]` is set exactly when queue (port, p) holds a frame.
 */

import { PRIORITIES } from 'rocev2/internal/packet';
import type { FramePool } from './frame-pool.js';

export class EgressQueues {
  readonly occupied: Uint8Array;
  readonly portPackets: Int32Array;
  readonly bytes: Float64Array;
  readonly bytesMax: Float64Array;
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

  headBytes(port: number, priority: number): number {
    return this.#pool.lengths[this.#head[port * PRIORITIES + priority]];
  }

  shift(port: number, priority: number): number {
    const queue = port * PRIORITIES + priority;
    const slot = this.#head[queue];
    this.#head[queue] = this.#pool.next[slot];
    this.bytes[queue] -= this.#pool.lengths[slot];
    this.portPackets[port]--;
    if (--this.packets[queue] === 0) this.occupied[port] &= ~(1 << priority);
    return slot;
  }

  resetWatermarks(): void {
    this.bytesMax.set(this.bytes);
  }
}
