/** A controller: what one host has of one subsystem. It lives as long as its admin queue. */

import { type Clock, NS_PER_MS, Permits, RoceError } from 'rocev2/internal/core';
import { ConnectionWatch } from 'rocev2/internal/storage-rpc';
import type { AnaPort } from './ana.js';
import { AsyncEvents, RESERVATION_CHANGED } from './async-events.js';
import type { ReservationEvent } from './log-pages.js';
import { Properties } from './properties.js';
import type { ReservationNotice } from './reservations.js';
import type { Subsystem } from './subsystem.js';

/** I/O queues of a host, at most. */
export const IO_QUEUES_MAX = 64;
/** Bytes that all commands of one host may have in memory at a time; more wait. */
const HOST_BYTES_MAX = 16 << 20;

/** Notifications of reservations that wait for the host to read them; of more the newest are lost. */
const RESERVATION_EVENTS_MAX = 255;

/** What a controller knows of a queue of its host. */
export interface ControllerQueue {
  /** Ends the queue, and its connection. */
  end(why: Error): void;
}

/** Who a controller is for. */
export interface ControllerInit {
  /** Controller ID, unique in its target. */
  readonly id: number;
  /** The subsystem that it belongs to. */
  readonly subsystem: Subsystem;
  /** NVMe qualified name by which subsystems know the host. */
  readonly hostNqn: string;
  /** Its host ID: 16 bytes in hex. */
  readonly hostId: string;
  /** The port that its admin queue came through. */
  readonly port: AnaPort;
  /** Keep-alive timeout in ms; 0: none. */
  readonly keepAliveMs: number;
  /** For the keep-alive timer. */
  readonly clock: Clock;
  /** Called once, at its end. */
  readonly onEnd: () => void;
}

/** A controller of a target. */
export class NvmeController {
  /** As in {@link ControllerInit}. */
  readonly id: number;
  /** The subsystem that it belongs to. */
  readonly subsystem: Subsystem;
  /** NVMe qualified name by which subsystems know the host. */
  readonly hostNqn: string;
  /** 16 bytes in hex: who the host is to reservations. */
  readonly hostId: string;
  /** The port that its admin queue came through. */
  readonly port: AnaPort;
  /** Its registers. */
  readonly properties = new Properties(() => this.#onReset());
  /** Asynchronous events. */
  readonly events = new AsyncEvents();
  /** Namespaces that changed since the host read their log page. */
  readonly changedNamespaces = new Set<number>();
  /** Memory of its host's commands, in bytes. */
  readonly share = new Permits(HOST_BYTES_MAX);
  /** Values of features that a host may set and nothing depends on, by number. */
  readonly features = new Map<number, number>();
  /** By namespace: notifications of reservations that the host does not want, a bit for each kind. */
  readonly maskedNotices = new Map<number, number>();
  /** Number of I/O queues the host may connect. */
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

  /** The host must be heard so often; 0: never. In ms. */
  get keepAliveMs(): number {
    return this.#keepAliveMs;
  }

  set keepAliveMs(ms: number) {
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

  /** Number of queues that are connected, the admin queue among them. */
  get queues(): number {
    return this.#queues.size;
  }

  /** Another host did something to a reservation: the host hears of it, unless it has masked that. */
  tellOfReservation(nsid: number, notice: ReservationNotice): void {
    const isMasked = ((this.maskedNotices.get(nsid) ?? 0) & (1 << notice)) !== 0;
    if (isMasked || this.#notices.length >= RESERVATION_EVENTS_MAX) return;
    this.#notices.push({ count: ++this.#noticeCount, notice, nsid });
    this.events.raise(RESERVATION_CHANGED);
  }

  /** The oldest notification that the host has not read. */
  get reservationEvent(): ReservationEvent | undefined {
    const [oldest] = this.#notices;
    return oldest && { ...oldest, more: this.#notices.length - 1 };
  }

  /** The host has read the oldest notification; it is told if there are more. */
  onReservationEventRead(): void {
    this.#notices.shift();
    if (this.#notices.length > 0) this.events.raise(RESERVATION_CHANGED);
  }

  /** A command came in: every one is a sign of life (TBKAS). */
  onCommand(): void {
    this.#watch?.onHeard();
  }

  /** Whether the queue is connected. */
  hasQueue(qid: number): boolean {
    return this.#queues.has(qid);
  }

  /** A queue has connected. */
  addQueue(qid: number, queue: ControllerQueue): void {
    this.#queues.set(qid, queue);
  }

  /** A queue has ended; without its admin queue the controller ends. */
  onQueueEnd(qid: number, why: Error): void {
    this.#queues.delete(qid);
    if (qid === 0) this.end(why);
  }

  /** Ends the controller and all its queues. */
  end(why: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watch?.stop();
    this.events.reset();
    this.share.freeAll();
    for (const queue of [...this.#queues.values()]) queue.end(why);
    this.#onEnd();
  }

  /** The host has cleared CC.EN: I/O queues end, the admin queue stays. */
  #onReset(): void {
    this.events.reset();
    this.changedNamespaces.clear();
    this.#notices.length = 0;
    this.maskedNotices.clear();
    const why = new RoceError('ERR_ROCE_CLOSED', 'the host has reset the controller');
    for (const [qid, queue] of [...this.#queues]) if (qid !== 0) queue.end(why);
  }
}
