/**
 * The transition of a connected queue pair to ERR, and the events that report its progress to the owner (IBTA vol. 1
 * §11.6.3).
 */

import {
  EVENT_COMM_EST,
  EVENT_QP_FATAL,
  EVENT_QP_LAST_WQE_REACHED,
  EVENT_SQ_DRAINED,
  QPS_ERR,
  QPS_RTR,
} from '../memory/ring/enums.js';
import type { QueuePairOptions } from './nic-queue-pair.js';
import type { PeerLink } from './peer-link.js';
import type { Scheduling } from './scheduling.js';

/** The parts that ERR stops. */
export interface Stoppable {
  /** Drops pending answers. */
  silence(): void;
  /** Completes everything that is posted to the send queue with WR_FLUSH_ERR. */
  flushSends(): void;
  /** Completes receives likewise, unless they are an SRQ's. */
  flushReceives(): void;
}

export class Lifecycle {
  readonly #options: QueuePairOptions;
  readonly #link: PeerLink;
  readonly #scheduling: Scheduling;
  #transport: Stoppable | undefined;
  /** In SQD: SQ_DRAINED is wanted, and has not been raised. */
  #wantsDrained = false;
  #hasCommunicated = false;

  constructor(options: QueuePairOptions, link: PeerLink, scheduling: Scheduling) {
    this.#options = options;
    this.#link = link;
    this.#scheduling = scheduling;
  }

  /** Those parts are made later, because they themselves can cause the transition. */
  attach(transport: Stoppable): void {
    this.#transport = transport;
  }

  /** The first request of the peer shows that it is ready to send. */
  establishCommunication(): void {
    if (this.#hasCommunicated) return;
    this.#hasCommunicated = true;
    const { host, qpn, attributes } = this.#options;
    if (attributes.state === QPS_RTR) host.raise(EVENT_COMM_EST, qpn);
  }

  expectDrained(wantsEvent: boolean): void {
    this.#wantsDrained = wantsEvent;
  }

  /** In SQD: all started work has completed. */
  sendQueueDrained(): void {
    if (!this.#wantsDrained) return;
    this.#wantsDrained = false;
    this.#options.host.raise(EVENT_SQ_DRAINED, this.#options.qpn);
  }

  /**
   * To ERR, by an error whose cause the caller has completed. With `finalNak`, pending answers still leave, the NAK
   * that names the cause last; without it, nothing more is sent.
   */
  enterError(finalNak = false): void {
    const { host, qpn, attributes } = this.#options;
    if (attributes.state !== QPS_ERR) host.raise(EVENT_QP_FATAL, qpn);
    this.stop(finalNak);
  }

  /** To ERR, by an error or by a command of the owner. */
  stop(finalNak: boolean): void {
    const { host, qpn, attributes, receives } = this.#options;
    const transport = this.#transport!;
    const wasRunning = attributes.state !== QPS_ERR;
    attributes.state = QPS_ERR;
    if (!finalNak) transport.silence();
    transport.flushSends();
    transport.flushReceives();
    this.#link.disconnect();
    this.#scheduling.deadlineNs = Number.POSITIVE_INFINITY;
    if (wasRunning && receives.shared) host.raise(EVENT_QP_LAST_WQE_REACHED, qpn);
    this.#scheduling.schedule();
  }

  reset(): void {
    this.#hasCommunicated = false;
    this.#scheduling.deadlineNs = Number.POSITIVE_INFINITY;
  }
}
