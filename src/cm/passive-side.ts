/**
 * The passive side: REQ, REP and RTU (IBTA vol. 1 §12.9.7.2). Times of a REQ are cut to our limits and its addresses
 * must match the datagram; the RTU, which repeats an ID that only the REP carried, validates the peer's address.
 */

import { equalBytes } from '../core/bytes.js';
import { RoceError } from '../core/errors.js';
import { NS_PER_MS } from '../core/units.js';
import type { IpAddress } from '../packet/address.js';
import { type ConnectionResources, TRANSPORT_RC } from './active-side.js';
import type { CmEndpoint } from './endpoint.js';
import { type IpEndpoints, parseIpPrivateData } from './ip-addressing.js';
import type { MadRetransmission } from './mad-retransmission.js';
import { ABOUT_OTHER, ABOUT_REQ } from './mad-sender.js';
import type { MessageFields } from './messages.js';
import { claimsRightly, type ProtocolParts, QPN_MIN } from './protocol-parts.js';
import {
  REJ_INVALID_COMM_ID,
  REJ_INVALID_GID,
  REJ_INVALID_PATH_MTU,
  REJ_INVALID_SERVICE_ID,
  REJ_INVALID_TRANSPORT,
  REJ_NO_RESOURCES,
  REJ_STALE_CONNECTION,
  REJ_UNSUPPORTED,
} from './reject-reason.js';
import type { Teardown } from './teardown.js';
import { MRA_SERVICE_TIMEOUT, peerResendNs, peerTimewaitNs } from './timing.js';

const PATH_MTU_CODE_MAX = 5;
/** There is no room now. The peer is not answered, and repeats its request. */
const DEFERRED = -1;

export interface IncomingRequest {
  readonly fields: MessageFields<'REQ'>;
  readonly endpoints: IpEndpoints;
  readonly userData: Uint8Array;
}

export type RequestHandler = (endpoint: CmEndpoint, request: IncomingRequest) => boolean;

export class PassiveSide {
  readonly #parts: ProtocolParts;
  readonly #retransmission: MadRetransmission;
  readonly #teardown: Teardown;
  readonly #listeners = new Map<bigint, RequestHandler>();

  constructor(parts: ProtocolParts, retransmission: MadRetransmission, teardown: Teardown) {
    this.#parts = parts;
    this.#retransmission = retransmission;
    this.#teardown = teardown;
  }

  listen(serviceId: bigint, handler: RequestHandler): void {
    if (this.#listeners.has(serviceId)) {
      throw new RoceError('ERR_ROCE_BUSY', `port ${serviceId & 0xffffn} already has a listener`);
    }
    this.#listeners.set(serviceId, handler);
  }

  unlisten(serviceId: bigint): void {
    this.#listeners.delete(serviceId);
  }

  onRequest(source: IpAddress, transactionId: bigint, fields: MessageFields<'REQ'>, now: number): void {
    const { table, options } = this.#parts;
    const known = table.byRemoteId(source, fields.localCaGuid, fields.localCommId);
    if (known !== undefined) {
      this.#onDuplicateRequest(known, transactionId, now);
      return;
    }
    const addressing = parseIpPrivateData(fields.privateData);
    const handler = this.#listeners.get(fields.serviceId);
    const refusal =
      handler === undefined || addressing === undefined
        ? REJ_INVALID_SERVICE_ID
        : this.#refusalOf(source, fields, addressing, now);
    if (refusal === DEFERRED) {
      this.#parts.counters.deferred++;
      return;
    }
    if (refusal !== undefined) {
      this.#refuse(source, transactionId, { remoteCommId: fields.localCommId, reason: refusal });
      return;
    }
    const endpoint = table.add(source, 'REQ_RCVD', () => {});
    endpoint.transactionId = transactionId;
    endpoint.unansweredRequests = 1;
    endpoint.resendNs = peerResendNs(fields.localResponseTimeout);
    endpoint.maxRetries = Math.min(fields.maxCmRetries, options.timing.maxRetries);
    endpoint.timewaitNs = peerTimewaitNs(fields.primaryLocalAckTimeout);
    table.learnRemote(endpoint, fields);
    this.#retransmission.awaitDecision(endpoint, now);
    const { userData, ...endpoints } = addressing!;
    if (handler!(endpoint, { fields, endpoints, userData })) return;
    this.#parts.counters.deferred++;
    table.remove(endpoint);
  }

  /** A reason, or {@link DEFERRED}. A stale connection that the request proves ends here. */
  #refusalOf(
    source: IpAddress,
    fields: MessageFields<'REQ'>,
    addressing: IpEndpoints,
    now: number,
  ): number | undefined {
    const { options, table, counters } = this.#parts;
    if (fields.transportType !== TRANSPORT_RC) return REJ_INVALID_TRANSPORT;
    if (!this.#claimsRightly(source, fields, addressing)) {
      counters.refusedAddress++;
      return REJ_INVALID_GID;
    }
    const pathMtuMax = Math.min(options.pathMtuCodeMax, PATH_MTU_CODE_MAX);
    if (fields.pathMtu < 1 || fields.pathMtu > pathMtuMax) return REJ_INVALID_PATH_MTU;
    if (fields.localQpn < QPN_MIN) return REJ_UNSUPPORTED;
    if (this.#teardown.replaceStale(source, fields)) return REJ_STALE_CONNECTION;
    const isValidated = table.validatedAddresses.has(source, fields.localCaGuid);
    const admission = table.admit(source, isValidated, now);
    if (admission === 'admitted') return undefined;
    return admission === 'full' ? REJ_NO_RESOURCES : DEFERRED;
  }

  #claimsRightly(source: IpAddress, fields: MessageFields<'REQ'>, claimed: IpEndpoints): boolean {
    const { options } = this.#parts;
    if (!claimsRightly(options, source, claimed)) return false;
    if (options.anyClaimedAddress) return true;
    return equalBytes(fields.primaryLocalGid, source.gid) && equalBytes(fields.primaryRemoteGid, options.address.gid);
  }

  #onDuplicateRequest(endpoint: CmEndpoint, transactionId: bigint, now: number): void {
    const { mads, counters } = this.#parts;
    counters.duplicates++;
    if (endpoint.state === 'TIMEWAIT') {
      const { remote, remoteCommId } = endpoint;
      this.#refuse(remote, transactionId, { remoteCommId, reason: REJ_STALE_CONNECTION });
      return;
    }
    endpoint.unansweredRequests++;
    if (endpoint.state === 'REQ_RCVD') {
      // The program has not decided yet: send an MRA.
      this.#retransmission.awaitDecision(endpoint, now);
      const request = { message: ABOUT_REQ, serviceTimeout: MRA_SERVICE_TIMEOUT };
      mads.send(endpoint, mads.message(endpoint, 'MRA', request), now);
    } else if (endpoint.state === 'REP_SENT') mads.send(endpoint, endpoint.unanswered, now); // The REP was lost.
  }

  /**
   * Accepts a request with a REP; the QP must be able to receive. The outcome is ESTABLISHED, REJECTED, UNREACHABLE or
   * EVICTED.
   */
  reply(endpoint: CmEndpoint, resources: ConnectionResources, now: number): void {
    const { table, mads, caGuid, options } = this.#parts;
    endpoint.expectState('REQ_RCVD');
    table.enter(endpoint, 'REP_SENT');
    endpoint.localQpn = resources.qpn;
    endpoint.repliedNs = now;
    endpoint.giveUpNs = now + options.limits.halfOpenMs * NS_PER_MS;
    const { startingPsn, responderResources, initiatorDepth, rnrRetryCount, privateData } = resources;
    const reply = mads.message(endpoint, 'REP', {
      localQpn: resources.qpn,
      startingPsn,
      responderResources,
      initiatorDepth,
      rnrRetryCount,
      localCaGuid: caGuid,
      privateData,
    });
    this.#retransmission.start(endpoint, reply, now);
  }

  onReadyToUse(source: IpAddress, transactionId: bigint, fields: MessageFields<'RTU'>): void {
    const { table, mads, counters } = this.#parts;
    const { localCommId, remoteCommId } = fields;
    const endpoint = table.match(source, remoteCommId, localCommId);
    if (endpoint === undefined) {
      // We have given it up, and the peer takes itself for connected: it learns of it.
      const ids = { localCommId: remoteCommId, remoteCommId: localCommId };
      mads.answer(source, 'REJ', transactionId, { ...ids, message: ABOUT_OTHER, reason: REJ_INVALID_COMM_ID });
      return;
    }
    table.validate(endpoint);
    if (endpoint.state === 'REP_SENT') this.#establish(endpoint);
    else counters.duplicates++;
  }

  /**
   * A packet arrived on the QP: the RTU must have been lost, or will come later. Harmless in any state but REP_SENT.
   */
  communicationEstablished(endpoint: CmEndpoint): void {
    if (endpoint.state === 'REP_SENT') this.#establish(endpoint);
  }

  #establish(endpoint: CmEndpoint): void {
    this.#retransmission.answered(endpoint, 'ESTABLISHED');
    // Valid for this connection: a sender of data knows QPN and PSN of the REP. Only an RTU counts for later ones.
    endpoint.isValidated = true;
    endpoint.onEvent({ type: 'ESTABLISHED' });
  }

  #refuse(to: IpAddress, transactionId: bigint, { remoteCommId, reason }: { remoteCommId: number; reason: number }) {
    this.#parts.counters.refused++;
    this.#parts.mads.answer(to, 'REJ', transactionId, { localCommId: 0, remoteCommId, message: ABOUT_REQ, reason });
  }
}
