/**
 * The side that serves datagrams: SIDR_REQ and SIDR_REP (IBTA vol. 1 §12.11). A request is one datagram and proves nothing about who sent it, so it
 * gets one datagram at most, of the same size, and what is kept of it is bounded. An answer is kept as long as the peer may repeat its request, and
 * the repetition gets the same answer: the program decides once.
 */

import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { Crowd } from './crowd.js';
import { type Due, DueSet } from './due-set.js';
import { type IpEndpoints, parseIpPrivateData } from './ip-addressing.js';
import { buildMad, type MessageFields } from './messages.js';
import { claimsRightly, NO_DATA, type ProtocolParts } from './protocol-parts.js';
import { SIDR_NO_QP, SIDR_UNSUPPORTED } from './reject-reason.js';
import { codeToNs, LINUX_TIMING } from './timing.js';

/** How long a peer may repeat a request: Linux sends it sixteen times. The same for a program that decides, and for an answer that is kept. */
const REPEATED_NS = (LINUX_TIMING.maxRetries + 1) * codeToNs(LINUX_TIMING.responseTimeout);

/** A request as the serving side sees it. */
export interface ServiceRequest extends Due {
  /** Who asks. */
  readonly remote: IpAddress;
  /** What for. */
  readonly serviceId: bigint;
  /** Who asks, and whom, as the request says. */
  readonly endpoints: IpEndpoints;
  /** Private data behind the IP addressing header: 180 bytes. */
  readonly userData: Uint8Array;
  /** Tells it from other requests. */
  readonly key: string;
  /** Of the peer. */
  readonly requestId: number;
  /** Of the peer. */
  readonly transactionId: bigint;
  /** The program has not decided, and may. */
  isPending: boolean;
  /** What the program has decided, as it was sent. */
  answer: Uint8Array;
}

/** What the program answers. */
export type ServiceAnswer = Pick<MessageFields<'SIDR_REP'>, 'status' | 'qpn' | 'qkey' | 'privateData'>;

/** Takes a request, or says that there is no room for it. */
export type ServiceRequestHandler = (request: ServiceRequest) => boolean;

/** Of one `CmProtocol`. */
export class SidrResponder {
  readonly #parts: ProtocolParts;
  readonly #services = new Map<bigint, ServiceRequestHandler>();
  /** Pending and answered. */
  readonly #byKey = new Map<string, ServiceRequest>();
  readonly #kept = new DueSet<ServiceRequest>();
  readonly #pending = new Crowd<ServiceRequest>();
  readonly #answered = new Crowd<ServiceRequest>();

  constructor(parts: ProtocolParts) {
    this.#parts = parts;
  }

  /** Throws ERR_ROCE_BUSY when somebody serves the service ID. */
  listen(serviceId: bigint, handler: ServiceRequestHandler): void {
    if (this.#services.has(serviceId)) {
      throw new RoceError('ERR_ROCE_BUSY', `somebody serves datagrams on port ${serviceId & 0xffffn} already`);
    }
    this.#services.set(serviceId, handler);
  }

  /** New requests for the service ID are refused from now on; those that were answered get their answer as long as they are repeated. */
  unlisten(serviceId: bigint): void {
    this.#services.delete(serviceId);
  }

  /** Takes a SIDR_REQ. */
  onRequest(source: IpAddress, transactionId: bigint, fields: MessageFields<'SIDR_REQ'>, now: number): void {
    const { counters, options } = this.#parts;
    const { requestId, serviceId } = fields;
    const key = `${source} ${transactionId} ${requestId} ${serviceId}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      this.#onDuplicate(known, now);
      return;
    }
    const addressing = parseIpPrivateData(fields.privateData);
    const handler = this.#services.get(serviceId);
    if (handler === undefined || addressing === undefined) {
      this.#refuse(source, transactionId, { requestId, serviceId, status: SIDR_UNSUPPORTED });
      return;
    }
    if (!claimsRightly(options, source, addressing)) {
      counters.refusedAddress++;
      this.#refuse(source, transactionId, { requestId, serviceId, status: SIDR_UNSUPPORTED });
      return;
    }
    this.#makeRoom(source);
    const { userData, ...endpoints } = addressing;
    const request: ServiceRequest = {
      remote: source,
      serviceId,
      endpoints,
      userData,
      key,
      requestId,
      transactionId,
      isPending: true,
      answer: NO_DATA,
      deadlineNs: now + REPEATED_NS,
    };
    this.#byKey.set(key, request);
    this.#kept.add(request);
    this.#pending.add(request);
    if (handler(request)) return;
    this.#forget(request);
    this.#refuse(source, transactionId, { requestId, serviceId, status: SIDR_NO_QP });
  }

  #onDuplicate(request: ServiceRequest, now: number): void {
    const { counters, mads } = this.#parts;
    counters.duplicates++;
    if (request.isPending) this.#kept.arm(request, now + REPEATED_NS);
    else mads.pass(request.remote, request.answer);
  }

  #refuse(to: IpAddress, transactionId: bigint, reply: Partial<MessageFields<'SIDR_REP'>>): void {
    const { counters, mads } = this.#parts;
    counters.refused++;
    mads.answer(to, 'SIDR_REP', transactionId, reply);
  }

  /** Of one more request than there may be, the oldest of its address makes room, or the oldest of the address that has the most. */
  #makeRoom(source: IpAddress): void {
    const { halfOpen, halfOpenPerAddress } = this.#parts.options.limits;
    const pending = this.#pending;
    if (pending.countOf(source) >= halfOpenPerAddress) this.crowdOut(pending.oldestOf(source)!);
    else if (pending.size >= halfOpen) this.crowdOut(pending.oldestOfFullest()!);
  }

  /** A pending request makes room; harmless for others. Its peer is not told: if it is honest it asks again, and is new. */
  crowdOut(request: ServiceRequest): void {
    if (!request.isPending) return;
    this.#parts.counters.crowdedOut++;
    this.#forget(request);
  }

  /** Answers a pending request, and each of its repetitions. Harmless for one whose peer has given up, or that has made room. */
  answer(request: ServiceRequest, answer: ServiceAnswer, now: number): void {
    if (!request.isPending) return;
    const { limits } = this.#parts.options;
    const { remote, requestId, serviceId, transactionId } = request;
    request.answer = buildMad('SIDR_REP', transactionId, { requestId, serviceId, ...answer });
    request.isPending = false;
    this.#pending.delete(request);
    if (this.#answered.countOf(remote) >= limits.timewaitPerAddress) this.#forget(this.#answered.oldestOf(remote)!);
    else if (this.#answered.size >= limits.endpoints) this.#forget(this.#answered.oldestOfFullest()!);
    this.#answered.add(request);
    this.#kept.arm(request, now + REPEATED_NS);
    this.#parts.mads.pass(remote, request.answer);
  }

  #forget(request: ServiceRequest): void {
    request.isPending = false;
    this.#byKey.delete(request.key);
    this.#kept.delete(request);
    this.#pending.delete(request);
    this.#answered.delete(request);
  }

  /** Requests that are kept: undecided ones, and those whose answer may have to be repeated. */
  get size(): number {
    return this.#kept.size;
  }

  /** When {@link onDeadline} has something to do, or earlier; Infinity: never. */
  get nextDeadlineNs(): number {
    return this.#kept.nextDeadlineNs;
  }

  /** Forgets requests that are not repeated any more. */
  onDeadline(now: number): void {
    for (const request of this.#kept.due(now)) this.#forget(request);
  }
}
