/** The active side: sends a REQ, and an RTU for the REP (IBTA vol. 1 §12.9.7.1). */

import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import type { CmEndpoint, CmEventHandler } from './endpoint.js';
import { encodeIpPrivateData } from './ip-addressing.js';
import type { MadRetransmission } from './mad-retransmission.js';
import { ABOUT_REP } from './mad-sender.js';
import type { MessageFields } from './messages.js';
import { DEFAULT_PKEY, NO_DATA, type ProtocolParts, QPN_MIN } from './protocol-parts.js';
import { REJ_INVALID_COMM_ID, REJ_STALE_CONNECTION } from './reject-reason.js';
import type { Teardown } from './teardown.js';
import { ackTimeoutCode, codeToNs, resendNs } from './timing.js';

export const TRANSPORT_RC = 0;
const PERMISSIVE_LID = 0xffff;
const HOP_LIMIT = 64;

export interface ConnectionResources {
  readonly qpn: number;
  readonly startingPsn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  /** Of the queue pair, 0..7; 7 means without limit. */
  readonly rnrRetryCount: number;
  readonly privateData: Uint8Array;
}

export interface RequestParameters extends ConnectionResources {
  readonly remote: IpAddress;
  readonly serviceId: bigint;
  readonly sourcePort: number;
  /** IBTA code 1..5. */
  readonly pathMtuCode: number;
  /** Of the queue pairs, 0..7. */
  readonly retryCount: number;
}

export class ActiveSide {
  readonly #parts: ProtocolParts;
  readonly #retransmission: MadRetransmission;
  readonly #teardown: Teardown;
  readonly #transactionBase: bigint;

  constructor(parts: ProtocolParts, retransmission: MadRetransmission, teardown: Teardown) {
    this.#parts = parts;
    this.#retransmission = retransmission;
    this.#teardown = teardown;
    this.#transactionBase = BigInt(parts.options.random.u32()) << 32n;
  }

  /** The outcome is an event: CONNECT_RESPONSE, REJECTED or UNREACHABLE. */
  connect(parameters: RequestParameters, onEvent: CmEventHandler, now: number): CmEndpoint {
    const { table, options, caGuid, mads } = this.#parts;
    const { address, timing, limits, dscp } = options;
    const { sourcePort, remote, privateData } = parameters;
    if (!table.makeRoom(remote, now)) {
      throw new RoceError('ERR_ROCE_LIMIT', `there are already ${limits.endpoints} connections`);
    }
    const endpoint = table.add(remote, 'REQ_SENT', onEvent);
    endpoint.transactionId = this.#transactionBase | BigInt(endpoint.localCommId);
    endpoint.localQpn = parameters.qpn;
    endpoint.resendNs = resendNs(timing);
    endpoint.maxRetries = timing.maxRetries;
    endpoint.timewaitNs = codeToNs(ackTimeoutCode(timing));
    const request = mads.message(endpoint, 'REQ', {
      serviceId: parameters.serviceId,
      localCaGuid: caGuid,
      localQpn: parameters.qpn,
      responderResources: parameters.responderResources,
      initiatorDepth: parameters.initiatorDepth,
      remoteResponseTimeout: timing.responseTimeout,
      transportType: TRANSPORT_RC,
      startingPsn: parameters.startingPsn,
      localResponseTimeout: timing.responseTimeout,
      retryCount: parameters.retryCount,
      pkey: DEFAULT_PKEY,
      pathMtu: parameters.pathMtuCode,
      rnrRetryCount: parameters.rnrRetryCount,
      maxCmRetries: timing.maxRetries,
      primaryLocalLid: PERMISSIVE_LID,
      primaryRemoteLid: PERMISSIVE_LID,
      primaryLocalGid: address.gid,
      primaryRemoteGid: remote.gid,
      primaryTrafficClass: dscp << 2,
      primaryHopLimit: HOP_LIMIT,
      primaryLocalAckTimeout: ackTimeoutCode(timing),
      privateData: encodeIpPrivateData({ source: address, destination: remote, sourcePort }, privateData),
    });
    this.#retransmission.start(endpoint, request, now);
    return endpoint;
  }

  onReply(source: IpAddress, transactionId: bigint, fields: MessageFields<'REP'>, now: number): void {
    const { table, mads, counters } = this.#parts;
    const endpoint = table.match(source, fields.remoteCommId);
    if (endpoint === undefined) {
      // Without an answer the peer would keep a half-open connection.
      const { localCommId, remoteCommId } = fields;
      const ids = { localCommId: remoteCommId, remoteCommId: localCommId };
      mads.answer(source, 'REJ', transactionId, { ...ids, message: ABOUT_REP, reason: REJ_INVALID_COMM_ID });
    } else if (fields.localQpn < QPN_MIN) counters.malformed++;
    else if (endpoint.state === 'REQ_SENT') this.#onFirstReply(endpoint, fields, now);
    else {
      counters.duplicates++;
      const isKnown = endpoint.isActive && endpoint.remoteCommId === fields.localCommId;
      if (endpoint.state === 'ESTABLISHED' && isKnown) this.#sendReadyToUse(endpoint, now); // The RTU was lost.
    }
  }

  #onFirstReply(endpoint: CmEndpoint, fields: MessageFields<'REP'>, now: number): void {
    const { table, mads } = this.#parts;
    if (this.#teardown.replaceStale(endpoint.remote, fields)) {
      endpoint.remoteCommId = fields.localCommId;
      mads.reject(endpoint, { about: ABOUT_REP, reason: REJ_STALE_CONNECTION }, now);
      table.remove(endpoint);
      endpoint.onEvent({ type: 'REJECTED', reason: REJ_STALE_CONNECTION, privateData: NO_DATA });
      return;
    }
    this.#retransmission.answered(endpoint, 'REP_RCVD');
    table.learnRemote(endpoint, fields);
    table.validate(endpoint);
    endpoint.onEvent({ type: 'CONNECT_RESPONSE', fields });
  }

  confirm(endpoint: CmEndpoint, now: number): void {
    endpoint.expectState('REP_RCVD');
    this.#parts.table.enter(endpoint, 'ESTABLISHED');
    this.#sendReadyToUse(endpoint, now);
  }

  #sendReadyToUse(endpoint: CmEndpoint, now: number): void {
    const { mads } = this.#parts;
    mads.send(endpoint, mads.message(endpoint, 'RTU', {}), now);
  }
}
