/**
 * One direction of an Ethernet link in virtual time: frames leave one after another at its rate and arrive, in order, after its delay.
 * Faults belong to switches; a cable only takes time.
 */

import { ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';
import { type FrameStorage, keepFrame, newSlots } from '../switch/frame-pool.js';
import type { EventQueue } from './event-queue.js';

/** Takes a frame, valid during the call. */
export type FrameSink = (bytes: Uint8Array, offset: number, length: number) => void;

/** Takes a frame that will arrive at `arrivalNs`, valid during the call. */
export type DepartureSink = (arrivalNs: number, bytes: Uint8Array, offset: number, length: number) => void;

/** Where arrivals are scheduled. */
export interface ArrivalSchedule {
  /** An arrival at `timeNs`. */
  at(timeNs: number, action: () => void): void;
}

interface CableOptions {
  readonly events: EventQueue;
  /** Bits per second. */
  readonly rateBps: number;
  readonly delayNs: number;
  /** The largest frame, without check sequence. */
  readonly frameBytesMax: number;
  /** Default: frames are kept whole. */
  readonly storage?: FrameStorage | undefined;
  /** What each frame has besides its own bytes and those of Ethernet: 32 for MACsec. Default 0. */
  readonly extraBytes?: number;
  /** Default: arrivals are events like others. */
  readonly arrivals?: ArrivalSchedule | undefined;
  /** Takes what is sent, if the other end is simulated elsewhere. */
  readonly depart?: DepartureSink | undefined;
}

/** A cable's one direction: a sender asks when it is free, sends, and the frame arrives at `receive` of the other end. */
export class Cable {
  /** Bits per second. */
  readonly rateBps: number;
  /** Propagation, one way. */
  readonly delayNs: number;
  /** What a frame takes on it besides its own bytes: preamble, check sequence, gap, and what was asked for. */
  readonly frameOverheadBytes: number;
  /** Frames and bytes (without overhead) that have been sent. */
  frames = 0;
  /** Bytes of the frames sent so far, without preamble, check sequence and gap. */
  bytes = 0;
  /** A cable that is down takes frames and loses them, and those under way. */
  isUp = true;
  /** Frames lost because it was down. */
  lostFrames = 0;
  readonly #events: EventQueue;
  readonly #schedule: ArrivalSchedule;
  readonly #depart: DepartureSink | undefined;
  readonly #slotBytes: number;
  readonly #storage: FrameStorage | undefined;
  readonly #nsPerByte: number;
  #sink: FrameSink = () => {};
  /** When the frame that is being sent has left. */
  #freeNs = 0;
  /** Frames under way, oldest at `#head`: a ring that grows to what the cable can hold. */
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

  /** Where it ends. */
  connect(sink: FrameSink): void {
    this.#sink = sink;
  }

  /** Sends a copy of the frame, behind what is being sent; returns when the sender may send the next. */
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

  /** One event at a time is scheduled, for the oldest frame. */
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
