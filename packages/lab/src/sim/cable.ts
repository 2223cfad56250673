/** Faults belong to switches; a cable only takes time. */

import { ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';
import type { FramePool } from '../switch/frame-pool.js';
import type { EventQueue } from './event-queue.js';

export type FrameSink = (bytes: Uint8Array, offset: number, length: number) => void;

/** Takes over the frame in a slot. It must not send on the cable that brought it. */
export type SlotSink = (slot: number) => void;

export type DepartureSink = (arrivalNs: number, bytes: Uint8Array, offset: number, length: number) => void;

export interface ArrivalSchedule {
  at(timeNs: number, action: () => void): void;
}

interface CableOptions {
  readonly events: EventQueue;
  readonly rateBps: number;
  readonly delayNs: number;
  readonly pool: FramePool;
  readonly extraBytes?: number;
  readonly arrivals?: ArrivalSchedule | undefined;
  readonly depart?: DepartureSink | undefined;
}

export class Cable {
  readonly rateBps: number;
  readonly delayNs: number;
  /** What a frame takes on it besides its own bytes: preamble, check sequence, gap, and the configured addition. */
  readonly frameOverheadBytes: number;
  frames = 0;
  bytes = 0;
  isUp = true;
  lostFrames = 0;
  readonly #events: EventQueue;
  readonly #schedule: ArrivalSchedule;
  readonly #depart: DepartureSink | undefined;
  readonly #pool: FramePool;
  readonly #nsPerByte: number;
  #sink: SlotSink;
  #freeNs = 0;
  /** Frames in flight: a chain of slots, oldest first. */
  #head = 0;
  #tail = 0;
  #count = 0;

  constructor(options: CableOptions) {
    this.rateBps = options.rateBps;
    this.delayNs = options.delayNs;
    this.#events = options.events;
    this.#schedule = options.arrivals ?? options.events;
    this.#depart = options.depart;
    const { pool, extraBytes = 0 } = options;
    this.frameOverheadBytes = ETHERNET_WIRE_BYTES + extraBytes;
    this.#pool = pool;
    this.#sink = (slot) => pool.release(slot);
    this.#nsPerByte = 8e9 / options.rateBps;
  }

  /** The bytes are valid during the call. */
  connect(sink: FrameSink): void {
    const pool = this.#pool;
    this.connectOwner((slot) => {
      sink(pool.bytes(slot), 0, pool.lengths[slot]);
      pool.release(slot);
    });
  }

  connectOwner(sink: SlotSink): void {
    this.#sink = sink;
  }

  /** Sends a copy of the frame. */
  send(bytes: Uint8Array, offset: number, length: number): number {
    return this.sendSlot(this.#pool.store(bytes, offset, length));
  }

  /** Sends the frame in `slot`, which is no longer the caller's. Returns when the cable is free. */
  sendSlot(slot: number): number {
    const pool = this.#pool;
    const length = pool.lengths[slot];
    this.frames++;
    this.bytes += length;
    const freeNs = Math.max(this.#events.nowNs, this.#freeNs) + (length + this.frameOverheadBytes) * this.#nsPerByte;
    this.#freeNs = freeNs;
    if (this.#depart === undefined) this.#fly(freeNs + this.delayNs, slot);
    else {
      this.#depart(freeNs + this.delayNs, pool.bytes(slot), 0, length);
      pool.release(slot);
    }
    return freeNs;
  }

  /** A copy of the frame arrives at `arrivalNs`, which is later than that of all frames before. */
  deliver(arrivalNs: number, bytes: Uint8Array, offset: number, length: number): void {
    this.#fly(arrivalNs, this.#pool.store(bytes, offset, length));
  }

  #fly(arrivalNs: number, slot: number): void {
    const pool = this.#pool;
    pool.arrivalNs[slot] = arrivalNs;
    if (this.#count++ === 0) {
      this.#head = slot;
      this.#schedule.at(arrivalNs, this.#arrive);
    } else pool.next[this.#tail] = slot;
    this.#tail = slot;
  }

  readonly #arrive = (): void => {
    const pool = this.#pool;
    const slot = this.#head;
    const next = pool.next[slot];
    if (this.isUp) this.#sink(slot);
    else {
      this.lostFrames++;
      pool.release(slot);
    }
    if (--this.#count === 0) return;
    this.#head = next;
    this.#schedule.at(pool.arrivalNs[next], this.#arrive);
  };
}
