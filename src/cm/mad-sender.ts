/**
 * Sends connection management datagrams without amplification: an unvalidated peer gets one datagram for each that it
 * sends, all of 256 bytes. Retransmissions and DREQs to such peers come out of one small shared budget (compare RFC
 * 9000 §8).
 */

import { TokenBucket } from '../core/token-bucket.js';
import type { IpAddress } from '../packet/address.js';
import { UNASKED_PACE } from './cm-limits.js';
import type { CmEndpoint } from './endpoint.js';
import { buildMad, type MessageFields, type MessageName } from './messages.js';
import { REJ_TIMEOUT } from './reject-reason.js';

export const ABOUT_REQ = 0;
export const ABOUT_REP = 1;
export const ABOUT_OTHER = 2;

/** A REJ after a timeout carries the sender's GUID, because it knows no ID of the other side. */
export const GUID_BYTES = 8;
const NO_DATA = new Uint8Array(0);

/** Counters of sent datagrams; part of `CmCounters`. */
export interface SenderCounters {
  /** All datagrams that were posted to QP1, including repeated ones. */
  sent: number;
  /** Unsolicited datagrams to unvalidated peers that exceeded their budget. */
  withheld: number;
}

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

  answer<N extends MessageName>(
    to: IpAddress,
    name: N,
    transactionId: bigint,
    fields: Partial<MessageFields<N>>,
  ): void {
    this.pass(to, buildMad(name, transactionId, fields));
  }

  pass(to: IpAddress, mad: Uint8Array): void {
    this.#counters.sent++;
    this.#transmit(to, mad);
  }

  message<N extends MessageName>(endpoint: CmEndpoint, name: N, fields: Partial<MessageFields<N>>): Uint8Array {
    const { transactionId, localCommId, remoteCommId } = endpoint;
    const ids: { localCommId: number; remoteCommId: number } = { localCommId, remoteCommId };
    return buildMad(name, transactionId, { ...ids, ...fields });
  }

  send(endpoint: CmEndpoint, mad: Uint8Array, now: number): void {
    if (endpoint.unansweredRequests > 0) endpoint.unansweredRequests--;
    else if (!endpoint.isValidated && !this.#unasked.take(now)) {
      this.#counters.withheld++;
      return;
    }
    this.pass(endpoint.remote, mad);
  }

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
