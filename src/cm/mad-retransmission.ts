/**
 * Retransmits a message until it is answered, its retries are used up or its time is over. Times that the peer requests
 * are limited (`timing.ts`), an MRA counts once per transmission, and a reply has one total time.
 */

import type { IpAddress } from '../packet/address.js';
import type { CmEndpoint } from './endpoint.js';
import { ABOUT_REP, ABOUT_REQ } from './mad-sender.js';
import type { MessageFields } from './messages.js';
import { NO_DATA, type ProtocolParts } from './protocol-parts.js';
import { REJ_TIMEOUT } from './reject-reason.js';
import { codeToNs, MRA_SERVICE_TIMEOUT, peerServiceNs } from './timing.js';

/** How long a request waits for the local program since the peer has last sent it: twice the time of the MRA. */
const DECISION_NS = 2 * codeToNs(MRA_SERVICE_TIMEOUT);

/** A request is repeated after its time, or up to this part of it later. */
const REQUEST_JITTER = 0.25;

/** Of one `CmProtocol`. */
export class MadRetransmission {
  readonly #parts: ProtocolParts;

  constructor(parts: ProtocolParts) {
    this.#parts = parts;
  }

  start(endpoint: CmEndpoint, mad: Uint8Array, now: number): void {
    endpoint.unanswered = mad;
    endpoint.retries = 0;
    endpoint.extendedAt = -1;
    this.#sendAndWait(endpoint, now);
  }

  #sendAndWait(endpoint: CmEndpoint, now: number): void {
    const { table, mads } = this.#parts;
    const waitNs = endpoint.state === 'REQ_SENT' ? this.#jittered(endpoint.resendNs) : endpoint.resendNs;
    table.arm(endpoint, Math.min(now + waitNs, endpoint.giveUpNs));
    mads.send(endpoint, endpoint.unanswered, now);
  }

  /** So that concurrent requests that a full listener dropped are not all repeated at the same time. */
  #jittered(ns: number): number {
    return ns * (1 + (REQUEST_JITTER * this.#parts.options.random.u32()) / 2 ** 32);
  }

  answered(endpoint: CmEndpoint, next: 'REP_RCVD' | 'ESTABLISHED'): void {
    endpoint.unanswered = NO_DATA;
    endpoint.giveUpNs = Number.POSITIVE_INFINITY;
    this.#parts.table.enter(endpoint, next);
  }

  awaitDecision(endpoint: CmEndpoint, now: number): void {
    this.#parts.table.arm(endpoint, now + DECISION_NS);
  }

  onReceiptAcknowledged(source: IpAddress, fields: MessageFields<'MRA'>, now: number): void {
    const { table, counters } = this.#parts;
    const endpoint = table.match(source, fields.remoteCommId);
    if (endpoint === undefined) return;
    const waitsForRtu = endpoint.state === 'REP_SENT' && endpoint.remoteCommId === fields.localCommId;
    const waitsFor = endpoint.state === 'REQ_SENT' ? ABOUT_REQ : waitsForRtu ? ABOUT_REP : undefined;
    if (fields.message !== waitsFor || endpoint.extendedAt === endpoint.retries) {
      counters.duplicates++;
      return;
    }
    const untilNs = now + peerServiceNs(fields.serviceTimeout) + endpoint.resendNs;
    if (waitsForRtu) {
      table.validate(endpoint);
      if (endpoint.extendedAt === -1) endpoint.giveUpNs = Math.max(endpoint.giveUpNs, untilNs);
    }
    endpoint.extendedAt = endpoint.retries;
    table.arm(endpoint, Math.min(untilNs, endpoint.giveUpNs));
  }

  onDeadline(now: number): void {
    const { table } = this.#parts;
    for (const endpoint of table.due(now)) {
      const { state, retries, maxRetries, giveUpNs } = endpoint;
      if (endpoint.deadlineNs > now) continue;
      if (state === 'TIMEWAIT') table.remove(endpoint);
      else if (state !== 'REQ_RCVD' && retries < maxRetries && now < giveUpNs) this.#resend(endpoint, now);
      else this.#giveUp(endpoint, now);
    }
  }

  #resend(endpoint: CmEndpoint, now: number): void {
    endpoint.retries++;
    this.#parts.counters.retries++;
    this.#sendAndWait(endpoint, now);
  }

  #giveUp(endpoint: CmEndpoint, now: number): void {
    const { table, mads, counters } = this.#parts;
    const { state, onEvent } = endpoint;
    if (state === 'DREQ_SENT') {
      table.enterTimewait(endpoint, now);
      onEvent({ type: 'DISCONNECTED' });
      return;
    }
    if (state === 'REQ_SENT') mads.reject(endpoint, { about: ABOUT_REQ, reason: REJ_TIMEOUT }, now);
    if (state === 'REP_SENT') {
      // If the RTU was lost, the active side considers itself connected: this ends its connection.
      mads.reject(endpoint, { about: ABOUT_REP, reason: REJ_TIMEOUT }, now);
      table.validatedAddresses.delete(endpoint.remote, endpoint.remoteCaGuid);
    }
    if (endpoint.isHalfOpen) counters.expired++;
    table.remove(endpoint);
    onEvent({ type: 'UNREACHABLE' });
  }
}
