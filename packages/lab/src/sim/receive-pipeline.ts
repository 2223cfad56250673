/**
 * The receive side of a NIC with a small cache of queue pair contexts, as Azure's first generation had: a miss makes a
 * packet slow. At half of the buffer the NIC pauses its switch, at a quarter it resumes. Source: Bai et al., NSDI'23,
 * §6.1, which gives no cache parameters. Invariant: waiting bytes <= bufferBytes; every packet is taken in order, or
 * counted as lost.
 */

import type { FramePool } from '../switch/frame-pool.js';
import type { SlotSink } from './cable.js';
import type { EventQueue } from './event-queue.js';

export interface ReceivePipelineOptions {
  readonly contexts: number;
  readonly hitNs: number;
  readonly missNs: number;
  readonly bufferBytes: number;
  readonly priority: number;
}

interface ReceivePipelineDriver {
  readonly events: EventQueue;
  readonly pool: FramePool;
  readonly take: SlotSink;
  readonly pause: (priority: number, isOn: boolean) => number;
}

const NOBODY = -1;

export class ReceivePipeline {
  lostPackets = 0;
  readonly #options: ReceivePipelineOptions;
  readonly #driver: ReceivePipelineDriver;
  readonly #pool: FramePool;
  readonly #cached = new Set<number>();
  /** By slot. */
  readonly #queuePairs = new Map<number, number>();
  #head = NOBODY;
  #tail = NOBODY;
  #waitingBytes = 0;
  /** When half of the requested pause has passed; Infinity while there is none. */
  #repeatNs = Number.POSITIVE_INFINITY;

  constructor(options: ReceivePipelineOptions, driver: ReceivePipelineDriver) {
    this.#options = options;
    this.#driver = driver;
    this.#pool = driver.pool;
  }

  /** Takes over the frame in `slot`, a packet for the queue pair `qpn`. */
  add(qpn: number, slot: number): void {
    const length = this.#pool.lengths[slot];
    if (this.#waitingBytes + length > this.#options.bufferBytes) {
      this.lostPackets++;
      this.#pool.release(slot);
      return;
    }
    this.#queuePairs.set(slot, qpn);
    this.#waitingBytes += length;
    this.#pool.next[slot] = NOBODY;
    if (this.#head === NOBODY) {
      this.#head = slot;
      this.#begin();
    } else this.#pool.next[this.#tail] = slot;
    this.#tail = slot;
    this.#control();
  }

  #begin(): void {
    const { contexts, hitNs, missNs } = this.#options;
    const qpn = this.#queuePairs.get(this.#head)!;
    this.#queuePairs.delete(this.#head);
    const isHit = this.#cached.delete(qpn);
    this.#cached.add(qpn);
    if (this.#cached.size > contexts) this.#cached.delete(this.#cached.values().next().value!);
    this.#driver.events.after(isHit ? hitNs : missNs, this.#end);
  }

  readonly #end = (): void => {
    const slot = this.#head;
    this.#waitingBytes -= this.#pool.lengths[slot];
    this.#head = this.#pool.next[slot];
    this.#driver.take(slot);
    if (this.#head !== NOBODY) this.#begin();
    this.#control();
  };

  #control(): void {
    const { bufferBytes, priority } = this.#options;
    const isPaused = this.#repeatNs !== Number.POSITIVE_INFINITY;
    const { nowNs } = this.#driver.events;
    if (isPaused && this.#waitingBytes < bufferBytes / 4) {
      this.#driver.pause(priority, false);
      this.#repeatNs = Number.POSITIVE_INFINITY;
    } else if (isPaused ? nowNs >= this.#repeatNs : this.#waitingBytes > bufferBytes / 2) {
      this.#repeatNs = nowNs + this.#driver.pause(priority, true) / 2;
    }
  }
}
