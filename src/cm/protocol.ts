/**
 * The connection protocol (IBTA vol. 1 §12.9): both sides of REQ, REP, RTU, DREQ and DREP, with their repetition over a lossy QP1. Sans-IO:
 * datagrams, decisions and the time come in; datagrams and events go out.
 *
 * Invariants: an endpoint is in the table of local IDs until its TIMEWAIT is over, so that late datagrams find it; a datagram is heeded
 * only when it comes from the address of the endpoint's peer; every wait has a deadline, except the one for the local program's decision.
 */

import { RoceError } from '../core/errors.js';
import { type RandomSource, randomInt } from '../core/random.js';
import type { IpAddress } from '../packet/address.js';
import { PSN_MASK } from '../packet/psn.js';
import { CmEndpoint, type CmEventHandler } from './endpoint.js';
import { encodeIpPrivateData, type IpEndpoints, parseIpPrivateData } from './ip-addressing.js';
import { buildMad, type CmMad, type MadFault, type MessageFields, type MessageName, parseMad } from './messages.js';
import {
  REJ_CONSUMER_DEFINED,
  REJ_INVALID_COMM_ID,
  REJ_INVALID_GID,
  REJ_INVALID_PATH_MTU,
  REJ_INVALID_SERVICE_ID,
  REJ_INVALID_TRANSPORT,
  REJ_NO_RESOURCES,
  REJ_STALE_CONNECTION,
  REJ_TIMEOUT,
  SIDR_UNSUPPORTED,
} from './reject-reason.js';
import { ackTimeoutCode, type CmTiming, codeToNs, resendNs } from './timing.js';

/** Endpoints at a time, those in TIMEWAIT included. */
const ENDPOINTS_MAX = 4096;
const TRANSPORT_RC = 0;
const DEFAULT_PKEY = 0xffff;
const PERMISSIVE_LID = 0xffff;
const HOP_LIMIT = 64;
const PATH_MTU_CODE_MAX = 5;
/** Which message an MRA or REJ is about. */
const ABOUT_REQ = 0;
const ABOUT_REP = 1;
/** What an MRA asks the peer for: 69 s, as Linux does. */
const MRA_SERVICE_TIMEOUT = 24;
const GUID_BYTES = 8;
const NO_DATA = new Uint8Array(0);

/** What this side wants of a connection; goes into the REQ. */
export interface RequestParameters extends ConnectionResources {
  /** IP address of the passive side. */
  readonly remote: IpAddress;
  /** What it listens on. */
  readonly serviceId: bigint;
  /** Port of this side. */
  readonly sourcePort: number;
  /** IBTA code 1..5. */
  readonly pathMtuCode: number;
  /** Of the queue pairs, 0..7. */
  readonly retryCount: number;
}

/** What either side says of itself, in REQ and REP. */
export interface ConnectionResources {
  /** Queue pair of this side. */
  readonly qpn: number;
  /** The PSN this side expects first. */
  readonly startingPsn: number;
  /** READs and atomics this side answers, and issues, at a time. */
  readonly responderResources: number;
  /** READs and atomics this side issues at a time. */
  readonly initiatorDepth: number;
  /** Of the queue pair, 0..7; 7 means without end. */
  readonly rnrRetryCount: number;
  /** For the program on the other side. */
  readonly privateData: Uint8Array;
}

/** A REQ as the listening side sees it. */
export interface IncomingRequest {
  /** As they stand in the REQ. */
  readonly fields: MessageFields<'REQ'>;
  /** Who asks, and whom. */
  readonly endpoints: IpEndpoints;
  /** Private data behind the IP addressing header. */
  readonly userData: Uint8Array;
}

/** Takes a request, or says that there is no room for it. */
export type RequestHandler = (endpoint: CmEndpoint, request: IncomingRequest) => boolean;

/** What a {@link CmProtocol} works with. */
export interface CmProtocolOptions {
  /** IP address of this side. */
  readonly address: IpAddress;
  /** Largest path MTU this side can do, as IBTA code. */
  readonly pathMtuCodeMax: number;
  /** For communication IDs and the CA GUID. */
  readonly random: RandomSource;
  /** Timeouts and retries. */
  readonly timing: CmTiming;
  /** Sends a MAD to QP1 of an address; it may be lost. */
  readonly send: (to: IpAddress, mad: Uint8Array) => void;
}

/** Datagrams of a connection manager since it was opened. */
export interface CmCounters {
  /** All that came to QP1. */
  received: number;
  /** Not a datagram of connection management, or not one of the known version. */
  malformed: number;
  /** For a connection that does not exist, or from somebody else than its peer. */
  unmatched: number;
  /** Known, but seen before. */
  duplicates: number;
  /** All that were given to QP1, repeated ones included. */
  sent: number;
  /** Of `sent`: repeated because no answer came in time. */
  retries: number;
}

/** What REQ and REP say of their sender. */
interface RemoteIdentity {
  readonly localCaGuid: bigint;
  readonly localCommId: number;
  readonly localQpn: number;
}

/** All endpoints of one device. */
export class CmProtocol {
  /** Counts up as long as it lives. */
  readonly counters: CmCounters = { received: 0, malformed: 0, unmatched: 0, duplicates: 0, sent: 0, retries: 0 };
  readonly #options: CmProtocolOptions;
  /** Tells this instance from an earlier one at the same address: peers remember its connections by it. */
  readonly #caGuid: bigint;
  readonly #transactionBase: bigint;
  readonly #listeners = new Map<bigint, RequestHandler>();
  readonly #byLocalId = new Map<number, CmEndpoint>();
  readonly #byRemoteId = new Map<string, CmEndpoint>();
  readonly #byRemoteQpn = new Map<string, CmEndpoint>();
  #nextCommId: number;

  constructor(options: CmProtocolOptions) {
    this.#options = options;
    const { random } = options;
    this.#caGuid = (BigInt(random.u32()) << 32n) | BigInt(random.u32());
    this.#transactionBase = BigInt(random.u32()) << 32n;
    this.#nextCommId = random.u32();
  }

  // ---- what the local program asks

  /** Throws ERR_ROCE_BUSY when the service ID has a listener. */
  listen(serviceId: bigint, handler: RequestHandler): void {
    if (this.#listeners.has(serviceId)) {
      throw new RoceError('ERR_ROCE_BUSY', `somebody listens on port ${serviceId & 0xffffn} already`);
    }
    this.#listeners.set(serviceId, handler);
  }

  /** Requests for the service ID are refused from now on. */
  unlisten(serviceId: bigint): void {
    this.#listeners.delete(serviceId);
  }

  /** Sends a REQ. The outcome is an event: CONNECT_RESPONSE, REJECTED or UNREACHABLE. Throws ERR_ROCE_LIMIT. */
  connect(parameters: RequestParameters, onEvent: CmEventHandler, now: number): CmEndpoint {
    if (this.#byLocalId.size >= ENDPOINTS_MAX) {
      throw new RoceError('ERR_ROCE_LIMIT', `there are ${ENDPOINTS_MAX} connections already`);
    }
    const { address, timing } = this.#options;
    const endpoint = this.#newEndpoint(parameters.remote, 'REQ_SENT', onEvent);
    endpoint.transactionId = this.#transactionBase | BigInt(endpoint.localCommId);
    endpoint.localQpn = parameters.qpn;
    endpoint.resendNs = resendNs(timing);
    endpoint.maxRetries = timing.maxRetries;
    endpoint.timewaitNs = codeToNs(ackTimeoutCode(timing));
    const { sourcePort, remote, privateData } = parameters;
    const request = this.#mad(endpoint, 'REQ', {
      localCommId: endpoint.localCommId,
      serviceId: parameters.serviceId,
      localCaGuid: this.#caGuid,
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
      primaryHopLimit: HOP_LIMIT,
      primaryLocalAckTimeout: ackTimeoutCode(timing),
      privateData: encodeIpPrivateData({ source: address, destination: remote, sourcePort }, privateData),
    });
    this.#sendUntilAnswered(endpoint, request, now);
    return endpoint;
  }

  /** Accepts a request with a REP; the QP must be able to receive. The outcome is ESTABLISHED, REJECTED or UNREACHABLE. */
  reply(endpoint: CmEndpoint, resources: ConnectionResources, now: number): void {
    endpoint.expectState('REQ_RCVD');
    endpoint.state = 'REP_SENT';
    endpoint.localQpn = resources.qpn;
    const reply = this.#mad(endpoint, 'REP', {
      localCommId: endpoint.localCommId,
      remoteCommId: endpoint.remoteCommId,
      localQpn: resources.qpn,
      startingPsn: resources.startingPsn,
      responderResources: resources.responderResources,
      initiatorDepth: resources.initiatorDepth,
      rnrRetryCount: resources.rnrRetryCount,
      localCaGuid: this.#caGuid,
      privateData: resources.privateData,
    });
    this.#sendUntilAnswered(endpoint, reply, now);
  }

  /** Answers a REP with RTU: the QP can send. */
  confirm(endpoint: CmEndpoint): void {
    endpoint.expectState('REP_RCVD');
    endpoint.state = 'ESTABLISHED';
    this.#sendRtu(endpoint);
  }

  /** A packet arrived on the QP: the RTU must have been lost, or will come later. Harmless in any state but REP_SENT. */
  communicationEstablished(endpoint: CmEndpoint): void {
    if (endpoint.state === 'REP_SENT') this.#establish(endpoint);
  }

  /** Refuses a request, or a reply that does not suit. */
  reject(endpoint: CmEndpoint, privateData: Uint8Array): void {
    const about = endpoint.state === 'REQ_RCVD' ? ABOUT_REQ : ABOUT_REP;
    this.#sendReject(endpoint, about, REJ_CONSUMER_DEFINED, privateData);
    this.#forget(endpoint);
  }

  /** Ends an established connection: DREQ, and DISCONNECTED once it is answered or nobody answers. Harmless when it has ended. */
  disconnect(endpoint: CmEndpoint, now: number): void {
    if (endpoint.state !== 'ESTABLISHED' && endpoint.state !== 'REP_SENT') return;
    endpoint.state = 'DREQ_SENT';
    const request = buildMad('DREQ', this.#transactionBase | BigInt(endpoint.localCommId), {
      localCommId: endpoint.localCommId,
      remoteCommId: endpoint.remoteCommId,
      remoteQpn: endpoint.remoteQpn,
    });
    this.#sendUntilAnswered(endpoint, request, now);
  }

  /** Drops an endpoint in any state, telling the peer once. There will be no more events. */
  abandon(endpoint: CmEndpoint, now: number): void {
    endpoint.onEvent = () => {};
    if (endpoint.state === 'TIMEWAIT') return;
    switch (endpoint.state) {
      case 'REQ_SENT':
        this.#sendReject(endpoint, ABOUT_REQ, REJ_TIMEOUT, NO_DATA);
        break;
      case 'REQ_RCVD':
      case 'REP_RCVD':
        this.reject(endpoint, NO_DATA);
        break;
      default:
        this.disconnect(endpoint, now);
    }
    this.#forget(endpoint);
  }

  /** All endpoints but those in TIMEWAIT. */
  liveEndpoints(): CmEndpoint[] {
    return [...this.#byLocalId.values()].filter(({ state }) => state !== 'TIMEWAIT');
  }

  // ---- time

  /** When `onDeadline` has something to do; Infinity: never. */
  get nextDeadlineNs(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { deadlineNs } of this.#byLocalId.values()) next = Math.min(next, deadlineNs);
    return next;
  }

  /** Sends again, gives up, and forgets what is over at `now` (ns). Call it when {@link nextDeadlineNs} has come; earlier does no harm. */
  onDeadline(now: number): void {
    for (const endpoint of [...this.#byLocalId.values()]) {
      if (endpoint.deadlineNs > now) continue;
      if (endpoint.state === 'TIMEWAIT') this.#forget(endpoint);
      else if (endpoint.retries < endpoint.maxRetries) this.#resend(endpoint, now);
      else this.#giveUp(endpoint, now);
    }
  }

  #resend(endpoint: CmEndpoint, now: number): void {
    endpoint.retries++;
    this.counters.retries++;
    endpoint.deadlineNs = now + endpoint.resendNs;
    this.#send(endpoint.remote, endpoint.unanswered);
  }

  #giveUp(endpoint: CmEndpoint, now: number): void {
    const { state } = endpoint;
    if (state === 'DREQ_SENT') {
      this.#enterTimewait(endpoint, now);
      endpoint.onEvent({ type: 'DISCONNECTED' });
      return;
    }
    this.#sendReject(endpoint, state === 'REQ_SENT' ? ABOUT_REQ : ABOUT_REP, REJ_TIMEOUT, NO_DATA);
    if (state === 'REQ_SENT') this.#forget(endpoint);
    else this.#enterTimewait(endpoint, now);
    endpoint.onEvent({ type: 'UNREACHABLE' });
  }

  // ---- datagrams

  /** Takes what arrived on QP1 from `source`. */
  receive(source: IpAddress, bytes: Uint8Array, now: number): void {
    this.counters.received++;
    const mad: CmMad | MadFault = parseMad(bytes);
    if (typeof mad === 'string') {
      this.counters.malformed++;
      return;
    }
    switch (mad.name) {
      case 'REQ':
        this.#onRequest(source, mad.transactionId, mad.fields);
        break;
      case 'REP':
        this.#onReply(source, mad.transactionId, mad.fields);
        break;
      case 'RTU':
        this.#onReadyToUse(source, mad.fields);
        break;
      case 'MRA':
        this.#onReceiptAcknowledged(source, mad.fields, now);
        break;
      case 'REJ':
        this.#onReject(source, mad.fields);
        break;
      case 'DREQ':
        this.#onDisconnectRequest(source, mad.transactionId, mad.fields, now);
        break;
      case 'DREP':
        this.#onDisconnectReply(source, mad.fields, now);
        break;
      case 'SIDR_REQ':
        this.#onServiceIdRequest(source, mad.transactionId, mad.fields);
        break;
      case 'SIDR_REP':
        this.counters.unmatched++;
    }
  }

  #onRequest(source: IpAddress, transactionId: bigint, fields: MessageFields<'REQ'>): void {
    const known = this.#byRemoteId.get(key(source, fields.localCaGuid, fields.localCommId));
    if (known !== undefined) {
      this.#onDuplicateRequest(known, transactionId);
      return;
    }
    const addressing = parseIpPrivateData(fields.privateData);
    const handler = this.#listeners.get(fields.serviceId);
    const refusal = this.#refusalOf(source, fields, handler === undefined || addressing === undefined);
    if (refusal !== undefined) {
      this.#refuse(source, transactionId, { remoteCommId: fields.localCommId, message: ABOUT_REQ, reason: refusal });
      return;
    }
    const endpoint = this.#newEndpoint(source, 'REQ_RCVD', () => {});
    endpoint.transactionId = transactionId;
    endpoint.resendNs = codeToNs(fields.localResponseTimeout);
    endpoint.maxRetries = fields.maxCmRetries;
    endpoint.timewaitNs = codeToNs(fields.primaryLocalAckTimeout);
    this.#learnRemote(endpoint, fields);
    const { userData, ...endpoints } = addressing!;
    if (handler!(endpoint, { fields, endpoints, userData })) return;
    this.#sendReject(endpoint, ABOUT_REQ, REJ_NO_RESOURCES, NO_DATA);
    this.#forget(endpoint);
  }

  /** The reason to refuse a REQ that is not a repetition, or undefined. A stale connection it proves ends on the way. */
  #refusalOf(source: IpAddress, fields: MessageFields<'REQ'>, noService: boolean): number | undefined {
    const { address, pathMtuCodeMax } = this.#options;
    if (noService) return REJ_INVALID_SERVICE_ID;
    if (fields.transportType !== TRANSPORT_RC) return REJ_INVALID_TRANSPORT;
    if (!sameBytes(fields.primaryLocalGid, source.gid)) return REJ_INVALID_GID;
    if (!sameBytes(fields.primaryRemoteGid, address.gid)) return REJ_INVALID_GID;
    if (fields.pathMtu < 1 || fields.pathMtu > Math.min(pathMtuCodeMax, PATH_MTU_CODE_MAX)) return REJ_INVALID_PATH_MTU;
    if (this.#replaceStale(source, fields)) return REJ_STALE_CONNECTION;
    if (this.#byLocalId.size >= ENDPOINTS_MAX) return REJ_NO_RESOURCES;
    return undefined;
  }

  #onDuplicateRequest(endpoint: CmEndpoint, transactionId: bigint): void {
    this.counters.duplicates++;
    const { remote, localCommId, remoteCommId } = endpoint;
    if (endpoint.state === 'TIMEWAIT') {
      this.#refuse(remote, transactionId, { remoteCommId, message: ABOUT_REQ, reason: REJ_STALE_CONNECTION });
    } else if (endpoint.state === 'REQ_RCVD') {
      // The program has not decided yet: ask the peer to wait for it.
      const fields = { localCommId, remoteCommId, message: ABOUT_REQ, serviceTimeout: MRA_SERVICE_TIMEOUT };
      this.#send(remote, this.#mad(endpoint, 'MRA', fields));
    } else if (endpoint.state === 'REP_SENT') {
      this.#send(remote, endpoint.unanswered); // The REP was lost.
    }
  }

  #onReply(source: IpAddress, transactionId: bigint, fields: MessageFields<'REP'>): void {
    const endpoint = this.#find(source, fields.remoteCommId);
    if (endpoint === undefined) {
      // Nobody waits for it any more; without an answer the peer would keep a half-open connection for a minute.
      this.#refuse(source, transactionId, {
        localCommId: fields.remoteCommId,
        remoteCommId: fields.localCommId,
        message: ABOUT_REP,
        reason: REJ_INVALID_COMM_ID,
      });
      return;
    }
    if (endpoint.state === 'REQ_SENT') {
      if (this.#replaceStale(source, fields)) {
        endpoint.remoteCommId = fields.localCommId;
        this.#sendReject(endpoint, ABOUT_REP, REJ_STALE_CONNECTION, NO_DATA);
        this.#forget(endpoint);
        endpoint.onEvent({ type: 'REJECTED', reason: REJ_STALE_CONNECTION, privateData: NO_DATA });
        return;
      }
      this.#answered(endpoint, 'REP_RCVD');
      this.#learnRemote(endpoint, fields);
      endpoint.onEvent({ type: 'CONNECT_RESPONSE', fields });
      return;
    }
    this.counters.duplicates++;
    if (endpoint.state === 'ESTABLISHED' && endpoint.isActive) this.#sendRtu(endpoint); // The RTU was lost.
  }

  #onReadyToUse(source: IpAddress, fields: MessageFields<'RTU'>): void {
    const endpoint = this.#find(source, fields.remoteCommId, fields.localCommId);
    if (endpoint === undefined) return;
    if (endpoint.state === 'REP_SENT') this.#establish(endpoint);
    else this.counters.duplicates++;
  }

  #establish(endpoint: CmEndpoint): void {
    this.#answered(endpoint, 'ESTABLISHED');
    endpoint.onEvent({ type: 'ESTABLISHED' });
  }

  #onReceiptAcknowledged(source: IpAddress, fields: MessageFields<'MRA'>, now: number): void {
    const endpoint = this.#find(source, fields.remoteCommId);
    if (endpoint === undefined) return;
    const waitsFor = endpoint.state === 'REQ_SENT' ? ABOUT_REQ : endpoint.state === 'REP_SENT' ? ABOUT_REP : undefined;
    if (fields.message === waitsFor) {
      endpoint.deadlineNs = now + codeToNs(fields.serviceTimeout) + endpoint.resendNs;
    }
  }

  #onReject(source: IpAddress, fields: MessageFields<'REJ'>): void {
    const endpoint = this.#rejected(source, fields);
    if (endpoint === undefined) return;
    const { state } = endpoint;
    if (state !== 'REQ_SENT' && state !== 'REQ_RCVD' && state !== 'REP_SENT') return;
    this.#forget(endpoint);
    endpoint.onEvent({ type: 'REJECTED', reason: fields.reason, privateData: fields.privateData });
  }

  /** Who tires of waiting for our answer does not know our ID yet, and gives its GUID as additional information instead. */
  #rejected(source: IpAddress, fields: MessageFields<'REJ'>): CmEndpoint | undefined {
    if (fields.remoteCommId !== 0 || fields.reason !== REJ_TIMEOUT || fields.infoLength < GUID_BYTES) {
      return this.#find(source, fields.remoteCommId);
    }
    const guid = new DataView(fields.info.buffer, fields.info.byteOffset).getBigUint64(0);
    const endpoint = this.#byRemoteId.get(key(source, guid, fields.localCommId));
    return this.#find(source, endpoint?.localCommId ?? 0);
  }

  #onDisconnectRequest(source: IpAddress, transactionId: bigint, fields: MessageFields<'DREQ'>, now: number): void {
    // Answered even when it is unknown: the peer saw our side go, but not our DREP.
    const endpoint = this.#find(source, fields.remoteCommId, fields.localCommId);
    if (endpoint !== undefined && endpoint.localQpn !== fields.remoteQpn) {
      this.counters.unmatched++;
      return;
    }
    const { localCommId, remoteCommId } = fields;
    this.#send(source, buildMad('DREP', transactionId, { localCommId: remoteCommId, remoteCommId: localCommId }));
    if (endpoint === undefined) return;
    if (endpoint.state === 'TIMEWAIT') {
      this.counters.duplicates++;
      return;
    }
    this.#enterTimewait(endpoint, now);
    endpoint.onEvent({ type: 'DISCONNECTED' });
  }

  #onDisconnectReply(source: IpAddress, fields: MessageFields<'DREP'>, now: number): void {
    const endpoint = this.#find(source, fields.remoteCommId, fields.localCommId);
    if (endpoint === undefined) return;
    if (endpoint.state !== 'DREQ_SENT') {
      this.counters.duplicates++;
      return;
    }
    this.#enterTimewait(endpoint, now);
    endpoint.onEvent({ type: 'DISCONNECTED' });
  }

  /** We have no datagram services. */
  #onServiceIdRequest(source: IpAddress, transactionId: bigint, fields: MessageFields<'SIDR_REQ'>): void {
    const { requestId, serviceId } = fields;
    this.#send(source, buildMad('SIDR_REP', transactionId, { requestId, serviceId, status: SIDR_UNSUPPORTED }));
  }

  // ---- tables

  #newEndpoint(remote: IpAddress, state: 'REQ_SENT' | 'REQ_RCVD', onEvent: CmEventHandler): CmEndpoint {
    while (this.#nextCommId === 0 || this.#byLocalId.has(this.#nextCommId)) this.#advanceCommId();
    const endpoint = new CmEndpoint(this.#nextCommId, remote, state, onEvent);
    this.#byLocalId.set(endpoint.localCommId, endpoint);
    this.#advanceCommId();
    return endpoint;
  }

  #advanceCommId(): void {
    this.#nextCommId = (this.#nextCommId + 1) >>> 0;
  }

  /** The endpoint with this ID of ours, if the datagram is from its peer; else it is counted. */
  #find(source: IpAddress, localCommId: number, remoteCommId?: number): CmEndpoint | undefined {
    const endpoint = this.#byLocalId.get(localCommId);
    const fromPeer = endpoint?.remote.equals(source) === true;
    if (fromPeer && (remoteCommId === undefined || endpoint.remoteCommId === remoteCommId)) return endpoint;
    this.counters.unmatched++;
    return undefined;
  }

  #learnRemote(endpoint: CmEndpoint, { localCaGuid, localCommId, localQpn }: RemoteIdentity): void {
    const { remote } = endpoint;
    endpoint.remoteCaGuid = localCaGuid;
    endpoint.remoteCommId = localCommId;
    endpoint.remoteQpn = localQpn;
    this.#byRemoteId.set(key(remote, localCaGuid, localCommId), endpoint);
    this.#byRemoteQpn.set(key(remote, localCaGuid, localQpn), endpoint);
  }

  /** True when we still know a connection with this QP of the peer's, who evidently does not: it ends now. */
  #replaceStale(source: IpAddress, { localCaGuid, localQpn }: RemoteIdentity): boolean {
    const stale = this.#byRemoteQpn.get(key(source, localCaGuid, localQpn));
    if (stale === undefined) return false;
    if (stale.state === 'TIMEWAIT') return true;
    const { onEvent } = stale;
    this.#forget(stale);
    onEvent({ type: 'DISCONNECTED' });
    return true;
  }

  #forget(endpoint: CmEndpoint): void {
    endpoint.state = 'CLOSED';
    endpoint.deadlineNs = Number.POSITIVE_INFINITY;
    this.#byLocalId.delete(endpoint.localCommId);
    const { remote, remoteCaGuid, remoteCommId, remoteQpn } = endpoint;
    removeIf(this.#byRemoteId, key(remote, remoteCaGuid, remoteCommId), endpoint);
    removeIf(this.#byRemoteQpn, key(remote, remoteCaGuid, remoteQpn), endpoint);
  }

  #enterTimewait(endpoint: CmEndpoint, now: number): void {
    this.#answered(endpoint, 'TIMEWAIT');
    endpoint.deadlineNs = now + endpoint.timewaitNs;
  }

  // ---- sending

  #mad<N extends MessageName>(endpoint: CmEndpoint, name: N, fields: Partial<MessageFields<N>>): Uint8Array {
    return buildMad(name, endpoint.transactionId, fields);
  }

  #send(to: IpAddress, mad: Uint8Array): void {
    this.counters.sent++;
    this.#options.send(to, mad);
  }

  #sendUntilAnswered(endpoint: CmEndpoint, mad: Uint8Array, now: number): void {
    endpoint.unanswered = mad;
    endpoint.retries = 0;
    endpoint.deadlineNs = now + endpoint.resendNs;
    this.#send(endpoint.remote, mad);
  }

  #answered(endpoint: CmEndpoint, next: 'REP_RCVD' | 'ESTABLISHED' | 'TIMEWAIT'): void {
    endpoint.state = next;
    endpoint.unanswered = NO_DATA;
    endpoint.deadlineNs = Number.POSITIVE_INFINITY;
  }

  #sendRtu(endpoint: CmEndpoint): void {
    const { localCommId, remoteCommId } = endpoint;
    this.#send(endpoint.remote, this.#mad(endpoint, 'RTU', { localCommId, remoteCommId }));
  }

  #sendReject(endpoint: CmEndpoint, about: number, reason: number, privateData: Uint8Array): void {
    const info = new Uint8Array(GUID_BYTES);
    new DataView(info.buffer).setBigUint64(0, this.#caGuid);
    const { localCommId, remoteCommId } = endpoint;
    const fields = { localCommId, remoteCommId, message: about, reason, privateData };
    const tired = reason === REJ_TIMEOUT ? { infoLength: GUID_BYTES, info } : {};
    this.#send(endpoint.remote, this.#mad(endpoint, 'REJ', { ...fields, ...tired }));
  }

  /** A REJ on behalf of no endpoint. */
  #refuse(
    to: IpAddress,
    transactionId: bigint,
    rejection: { localCommId?: number; remoteCommId: number; message: number; reason: number },
  ): void {
    this.#send(to, buildMad('REJ', transactionId, { localCommId: 0, ...rejection }));
  }
}

/** A start PSN nobody can guess. */
export function randomPsn(random: RandomSource): number {
  return randomInt(random, 0, PSN_MASK);
}

/** Peers are told apart by address and GUID, and what is theirs by a number. */
function key(remote: IpAddress, caGuid: bigint, id: number): string {
  return `${remote} ${caGuid} ${id}`;
}

function removeIf(table: Map<string, CmEndpoint>, at: string, endpoint: CmEndpoint): void {
  if (table.get(at) === endpoint) table.delete(at);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.every((byte, i) => byte === b[i]);
}
