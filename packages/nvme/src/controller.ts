import { type Clock, NS_PER_MS, Permits, RoceError } from 'rocev2/internal/core';
import { ConnectionWatch } from 'rocev2/internal/storage-rpc';
import type { AnaPort } from './ana.js';
import { AsyncEvents, RESERVATION_CHANGED } from './async-events.js';
import { KEEP_ALIVE_UNIT_MS } from './identify.js';
import type { ReservationEvent } from './log-pages.js';
import { Properties } from './properties.js';
import type { ReservationNotice } from './reservations.js';
import type { Subsystem } from './subsystem.js';

export const IO_QUEUES_MAX = 64;
/** Bytes that all commands of one host may have in memory at a time; more wait. */
const HOST_BYTES_MAX = 16 << 20;

/** The timer has 32 bits of milliseconds. */
const KEEP_ALIVE_UNITS_MAX = Math.floor(0xffff_ffff / KEEP_ALIVE_UNIT_MS);
const RESERVATION_EVENTS_MAX = 255;

export interface ControllerQueue {
  end(why: Error): void;
}

export interface ControllerInit {
  readonly id: number;
  readonly subsystem: Subsystem;
  readonly hostNqn: string;
  readonly hostId: string;
  readonly port: AnaPort;
  readonly keepAliveMs: number;
  readonly clock: Clock;
  readonly onEnd: () => void;
}

export class NvmeController {
  readonly id: number;
  readonly subsystem: Subsystem;
  readonly hostNqn: string;
  readonly hostId: string;
  readonly port: AnaPort;
  readonly properties = new Properties(() => this.#onReset());
  readonly events = new AsyncEvents();
  readonly changedNamespaces = new Set<number>();
  /** Memory of its host's commands, in bytes. */
  readonly share = new Permits(HOST_BYTES_MAX);
  readonly features = new Map<number, number>();
  readonly maskedNotices = new Map<number, number>();
  ioQueues = IO_QUEUES_MAX;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  readonly #queues = new Map<number, ControllerQueue>();
  readonly #notices: Array<Omit<ReservationEvent, 'more'>> = [];
  #noticeCount = 0;
  #keepAliveMs = 0;
  #watch: ConnectionWatch | undefined;
  #ended = false;

  constructor({ id, subsystem, hostNqn, hostId, port, keepAliveMs, clock, onEnd }: ControllerInit) {
    this.id = id;
    this.subsystem = subsystem;
    this.hostNqn = hostNqn;
    this.hostId = hostId;
    this.port = port;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.keepAliveMs = keepAliveMs;
  }

  get keepAliveMs(): number {
    return this.#keepAliveMs;
  }

  /** Rounded up to whole units of KAS. */
  set keepAliveMs(requestedMs: number) {
    const units = Math.min(Math.ceil(requestedMs / KEEP_ALIVE_UNIT_MS), KEEP_ALIVE_UNITS_MAX);
    const ms = units * KEEP_ALIVE_UNIT_MS;
    this.#keepAliveMs = ms;
    this.#watch?.stop();
    this.#watch = undefined;
    if (ms === 0) return;
    this.#watch = new ConnectionWatch({
      clock: this.#clock,
      idleNs: (ms * NS_PER_MS) / 2,
      silenceNs: ms * NS_PER_MS,
      ask: () => {},
      look: () => this.#ended,
      onSilent: () => this.end(new RoceError('ERR_ROCE_CONNECT', `the host was silent for ${ms} ms`)),
    });
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  get queues(): number {
    return this.#queues.size;
  }

  tellOfReservation(nsid: number, notice: ReservationNotice): void {
    const isMasked = ((this.maskedNotices.get(nsid) ?? 0) & (1 << notice)) !== 0;
    if (isMasked || this.#notices.length >= RESERVATION_EVENTS_MAX) return;
    this.#notices.push({ count: ++this.#noticeCount, notice, nsid });
    this.events.raise(RESERVATION_CHANGED);
  }

  get reservationEvent(): ReservationEvent | undefined {
    const [oldest] = this.#notices;
    return oldest && { ...oldest, more: this.#notices.length - 1 };
  }

  onReservationEventRead(): void {
    this.#notices.shift();
    if (this.#notices.length > 0) this.events.raise(RESERVATION_CHANGED);
  }

  /** A command came in: every one is a sign of life (TBKAS). */
  onCommand(): void {
    this.#watch?.onHeard();
  }

  hasQueue(qid: number): boolean {
    return this.#queues.has(qid);
  }

  addQueue(qid: number, queue: ControllerQueue): void {
    this.#queues.set(qid, queue);
  }

  /** Ends without ending its admin queue, which answers Connect with the reason. */
  refuse(why: Error): void {
    this.#queues.delete(0);
    this.end(why);
  }

  /** A queue has ended; without its admin queue the controller ends. */
  onQueueEnd(qid: number, queue: ControllerQueue, why: Error): void {
    if (this.#queues.get(qid) !== queue) return; // It was never admitted.
    this.#queues.delete(qid);
    if (qid === 0) this.end(why);
  }

  end(why: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watch?.stop();
    this.events.reset();
    this.share.freeAll();
    for (const queue of [...this.#queues.values()]) queue.end(why);
    this.#onEnd();
  }

  #onReset(): void {
    this.events.reset();
    this.changedNamespaces.clear();
    this.#notices.length = 0;
    this.maskedNotices.clear();
    const why = new RoceError('ERR_ROCE_CLOSED', 'the host has reset the controller');
    for (const [qid, queue] of [...this.#queues]) if (qid !== 0) queue.end(why);
  }
}
