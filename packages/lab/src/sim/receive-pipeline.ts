/**
 * The receive side of a NIC that keeps the contexts of few queue pairs at hand, as Azure's first generation did: packets are taken in one after another,
 * fast while the context of their queue pair is in the cache, slowly when it must be fetched from the host. What waits fills a buffer; at half of
 * it the NIC asks its switch to pause, at a quarter to go on.
 *
 * Source: Bai et al., NSDI'23, §6.1. The paper gives no numbers of the cache.
 *
 * Invariant: bytes that wait <= bufferBytes; every packet is taken in, in order, or counted as lost.
 */

import { FramePool, type FrameStorage } from '../switch/frame-pool.js';
import type { FrameSink } from './cable.js';
import type { EventQueue } from './event-queue.js';

/** The cache, the times and the buffer of a receive pipeline. */
export interface ReceivePipelineOptions {
  /** Queue pairs whose contexts the cache holds; the one used longest ago makes room. */
  readonly contexts: number;
  /** Time a packet takes whose queue pair is in the cache. */
  readonly hitNs: number;
  /** Time any other packet takes. */
  readonly missNs: number;
  /** What may wait; a packet that finds no place is lost. */
  readonly bufferBytes: number;
  /** Of the pauses. */
  readonly priority: number;
}

interface ReceivePipelineDriver {
  readonly events: EventQueue;
  readonly frameBytesMax: number;
  /** Default: frames are kept whole. */
  readonly storage?: FrameStorage | undefined;
  /** Takes a packet whose turn has come. */
  readonly take: FrameSink;
  /** Asks the switch for a pause, or to end it. Returns how long the pause lasts. */
  readonly pause: (priority: number, isOn: boolean) => number;
}

const NOBODY = -1;

/** The receive side of one station. */
export class ReceivePipeline {
  /** Packets that found no room in the buffer. */
  lostPackets = 0;
  readonly #options: ReceivePipelineOptions;
  readonly #driver: ReceivePipelineDriver;
  readonly #pool: FramePool;
  /** Queue pairs, the one used longest ago first. */
  readonly #cached = new Set<number>();
  /** By slot of the pool. */
  readonly #queuePairs: number[] = [];
  #head = NOBODY;
  #tail = NOBODY;
  #waitingBytes = 0;
  /** When the pause that was asked for has half run out; Infinity while there is none. */
  #repeatNs = Number.POSITIVE_INFINITY;

  constructor(options: ReceivePipelineOptions, driver: ReceivePipelineDriver) {
    this.#options = options;
    this.#driver = driver;
    this.#pool = new FramePool(driver.frameBytesMax, driver.storage);
  }

  /** A packet for queue pair `qpn` has arrived. */
  add(qpn: number, bytes: Uint8Array, offset: number, length: number): void {
    if (this.#waitingBytes + length > this.#options.bufferBytes) {
      this.lostPackets++;
      return;
    }
    const slot = this.#pool.store(bytes, offset, length);
    this.#queuePairs[slot] = qpn;
    this.#waitingBytes += length;
    this.#pool.next[slot] = NOBODY;
    if (this.#head === NOBODY) {
      this.#head = slot;
      this.#begin();
    } else this.#pool.next[this.#tail] = slot;
    this.#tail = slot;
    this.#control();
  }

  /** The packet at the head is being taken in. */
  #begin(): void {
    const { contexts, hitNs, missNs } = this.#options;
    const qpn = this.#queuePairs[this.#head];
    const isHit = this.#cached.delete(qpn);
    this.#cached.add(qpn);
    if (this.#cached.size > contexts) this.#cached.delete(this.#cached.values().next().value!);
    this.#driver.events.after(isHit ? hitNs : missNs, this.#end);
  }

  readonly #end = (): void => {
    const slot = this.#head;
    this.#waitingBytes -= this.#pool.lengths[slot];
    this.#driver.take(this.#pool.bytes(slot), 0, this.#pool.lengths[slot]);
    this.#head = this.#pool.next[slot];
    this.#pool.release(slot);
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
