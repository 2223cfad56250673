/** Faults belong to switches; a cable only takes time. */

import { ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';
import { type FrameStorage, keepFrame, newSlots } from '../switch/frame-pool.js';
import type { EventQueue } from './event-queue.js';

export type FrameSink = (bytes: Uint8Array, offset: number, length: number) => void;

export type DepartureSink = (arrivalNs: number, bytes: Uint8Array, offset: number, length: number) => void;

export interface ArrivalSchedule {
  at(timeNs: number, action: () => void): void;
}

interface CableOptions {
  readonly events: EventQueue;
  readonly rateBps: number;
  readonly delayNs: number;
  readonly frameBytesMax: number;
  readonly storage?: FrameStorage | undefined;
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
  readonly #slotBytes: number;
  readonly #storage: FrameStorage | undefined;
  readonly #nsPerByte: number;
  #sink: FrameSink = () => {};
  #freeNs = 0;
  /** Frames in flight, oldest at `#head`: a ring that grows to the capacity of the cable. */
  #slots: Uint8Array[] = [];
  #lengths: number[] = [];
  #arrivals: number[] = [];
  #head = 0;
  #count = 0;

  constructor(options: CableOptions) {
    this.rateBps = options.rateBps;
    this.delayNs = options.delayNs;
    this.#events = options.events;
    this.#schedule = options.arrivals ?? options.events;
    this.#depart = options.depart;
    const { frameBytesMax, storage, extraBytes = 0 } = options;
    this.frameOverheadBytes = ETHERNET_WIRE_BYTES + extraBytes;
    this.#slotBytes = storage === undefined ? frameBytesMax : Math.min(frameBytesMax, storage.wholeBytesMax);
    this.#storage = storage;
    this.#nsPerByte = 8e9 / options.rateBps;
  }

  connect(sink: FrameSink): void {
    this.#sink = sink;
  }

  send(bytes: Uint8Array, offset: number, length: number): number {
    this.frames++;
    this.bytes += length;
    const freeNs = Math.max(this.#events.nowNs, this.#freeNs) + (length + this.frameOverheadBytes) * this.#nsPerByte;
    this.#freeNs = freeNs;
    if (this.#depart === undefined) this.deliver(freeNs + this.delayNs, bytes, offset, length);
    else this.#depart(freeNs + this.delayNs, bytes, offset, length);
    return freeNs;
  }

  /** A copy of the frame arrives at `arrivalNs`, which is later than that of all frames before. */
  deliver(arrivalNs: number, bytes: Uint8Array, offset: number, length: number): void {
    if (this.#count === this.#slots.length) this.#grow();
    const place = (this.#head + this.#count) & (this.#slots.length - 1);
    keepFrame(bytes, offset, length, this.#slots[place], this.#storage);
    this.#lengths[place] = length;
    this.#arrivals[place] = arrivalNs;
    this.#count++;
    if (this.#count === 1) this.#schedule.at(arrivalNs, this.#arrive);
  }

  readonly #arrive = (): void => {
    const place = this.#head;
    if (this.isUp) this.#sink(this.#slots[place], 0, this.#lengths[place]);
    else this.lostFrames++;
    this.#head = (place + 1) & (this.#slots.length - 1);
    this.#count--;
    if (this.#count > 0) this.#schedule.at(this.#arrivals[this.#head], this.#arrive);
  };

  #grow(): void {
    const size = Math.max(4, this.#slots.length * 2);
    const inOrder = <T>(ring: readonly T[]): T[] => [...ring.slice(this.#head), ...ring.slice(0, this.#head)];
    this.#slots = inOrder(this.#slots);
    this.#lengths = inOrder(this.#lengths);
    this.#arrivals = inOrder(this.#arrivals);
    this.#head = 0;
    this.#slots.push(...newSlots(size - this.#slots.length, this.#slotBytes));
  }
}
