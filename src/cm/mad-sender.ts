/**
 * Sends the datagrams of connection management, and sees to it that nobody is flooded through us: a peer that has not proved to be where its
 * datagrams say it is gets one datagram for each that came from there, all of 256 bytes. What goes to such peers beyond that, repetitions and
 * goodbyes, comes out of one small budget for all of them (RFC 9000 §8 has the same concern and three times what came).
 */

import { TokenBucket } from '../core/token-bucket.js';
import type { IpAddress } from '../packet/address.js';
import { UNASKED_PACE } from './cm-limits.js';
import type { CmEndpoint } from './endpoint.js';
import { buildMad, type MessageFields, type MessageName } from './messages.js';
import { REJ_TIMEOUT } from './reject-reason.js';

/** An MRA or REJ about a REQ. */
export const ABOUT_REQ = 0;
/** An MRA or REJ about a REP. */
export const ABOUT_REP = 1;
/** A REJ about another message. */
export const ABOUT_OTHER = 2;

/** A REJ carries the GUID of who tires of waiting for an answer, because it knows no ID of the other side. */
export const GUID_BYTES = 8;
const NO_DATA = new Uint8Array(0);

/** What was sent; part of `CmCounters`. */
export interface SenderCounters {
  /** All that were given to QP1, repeated ones included. */
  sent: number;
  /** Unasked datagrams to peers that have proved nothing, which the budget for them did not allow. */
  withheld: number;
}

/** Of one connection manager. */
export class MadSender {
  readonly #caGuid: bigint;
  readonly #counters: SenderCounters;
  readonly #transmit: (to: IpAddress, mad: Uint8Array) => void;
  readonly #unasked = new TokenBucket(UNASKED_PACE);

  constructor(caGuid: bigint, counters: SenderCounters, transmit: (to: IpAddress, mad: Uint8Array) => void) {
    this.#caGuid = caGuid;
    this.#counters = counters;
    this.#transmit = transmit;
  }

  /** The one answer to a datagram that belongs to no endpoint. */
  answer<N extends MessageName>(
    to: IpAddress,
    name: N,
    transactionId: bigint,
    fields: Partial<MessageFields<N>>,
  ): void {
    this.pass(to, buildMad(name, transactionId, fields));
  }

  /** Sends what anybody may have: a request of our own, or the one answer to a datagram. */
  pass(to: IpAddress, mad: Uint8Array): void {
    this.#counters.sent++;
    this.#transmit(to, mad);
  }

  /** A message of an endpoint, in its transaction and with the IDs of both ends. */
  message<N extends MessageName>(endpoint: CmEndpoint, name: N, fields: Partial<MessageFields<N>>): Uint8Array {
    const { transactionId, localCommId, remoteCommId } = endpoint;
    const ids: { localCommId: number; remoteCommId: number } = { localCommId, remoteCommId };
    return buildMad(name, transactionId, { ...ids, ...fields });
  }

  /** Sends a message to the peer of the endpoint, if it may have it. */
  send(endpoint: CmEndpoint, mad: Uint8Array, now: number): void {
    if (endpoint.unansweredRequests > 0) endpoint.unansweredRequests--;
    else if (!endpoint.isValidated && !this.#unasked.take(now)) {
      this.#counters.withheld++;
      return;
    }
    this.pass(endpoint.remote, mad);
  }

  /** Refuses what the peer of the endpoint has said. */
  reject(
    endpoint: CmEndpoint,
    rejection: { about: number; reason: number; privateData?: Uint8Array },
    now: number,
  ): void {
    const { about, reason, privateData = NO_DATA } = rejection;
    const info = new Uint8Array(GUID_BYTES);
    new DataView(info.buffer).setBigUint64(0, this.#caGuid);
    const tired = reason === REJ_TIMEOUT ? { infoLength: GUID_BYTES, info } : {};
    this.send(endpoint, this.message(endpoint, 'REJ', { message: about, reason, privateData, ...tired }), now);
  }
}
