/**
 * The serving side of datagram services: SIDR_REQ and SIDR_REP (IBTA vol. 1 §12.11). A request is one datagram and proves nothing about its sender.
 * Therefore it gets at most one datagram of the same size, and the memory that it occupies is bounded. An answer is kept as long as the peer may repeat
 * the request. A repetition gets the same answer: the program decides once.
 */

import { ConnectionLimiter } from '../core/connection-limiter.js';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { type Due, DueSet } from './due-set.js';
import { type IpEndpoints, parseIpPrivateData } from './ip-addressing.js';
import { buildMad, type MessageFields } from './messages.js';
import { claimsRightly, NO_DATA, type ProtocolParts } from './protocol-parts.js';
import { SIDR_NO_QP, SIDR_UNSUPPORTED } from './reject-reason.js';
import { codeToNs, LINUX_TIMING } from './timing.js';

/** Linux sends a request up to sixteen times. So long the program may take to decide, and so long an answer is kept. */
const REPEATED_NS = (LINUX_TIMING.maxRetries + 1) * codeToNs(LINUX_TIMING.responseTimeout);

/** A received request. */
export interface ServiceRequest extends Due {
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** Service ID of the requested service. */
  readonly serviceId: bigint;
  /** Source and destination, as the request claims them. */
  readonly endpoints: IpEndpoints;
  /** Private data behind the IP addressing header: 180 bytes. */
  readonly userData: Uint8Array;
  /** Identifies the request. */
  readonly key: string;
  /** Request ID that the peer chose. */
  readonly requestId: number;
  /** Transaction ID that the peer chose. */
  readonly transactionId: bigint;
  /** The program has yet to decide. */
  isPending: boolean;
  /** The SIDR_REP that was sent. */
  answer: Uint8Array;
}

/** The program's decision. */
export type ServiceAnswer = Pick<MessageFields<'SIDR_REP'>, 'status' | 'qpn' | 'qkey' | 'privateData'>;

/** Takes a request, or returns false if there is no room for it. */
export type ServiceRequestHandler = (request: ServiceRequest) => boolean;

/** Datagram services of one `CmProtocol`. */
export class SidrResponder {
  readonly #parts: ProtocolParts;
  readonly #services = new Map<bigint, ServiceRequestHandler>();
  /** Pending and answered requests. */
  readonly #byKey = new Map<string, ServiceRequest>();
  readonly #kept = new DueSet<ServiceRequest>();
  /** Answered requests are `admitted`. */
  readonly #limiter: ConnectionLimiter<ServiceRequest>;

  constructor(parts: ProtocolParts) {
    this.#parts = parts;
    const { halfOpen, halfOpenPerAddress, endpoints, timewaitPerAddress } = parts.options.limits;
    this.#limiter = new ConnectionLimiter<ServiceRequest>({
      quotas: [
        { states: ['pending'], total: halfOpen, perAddress: halfOpenPerAddress },
        { states: ['admitted'], total: endpoints, perAddress: timewaitPerAddress },
      ],
      evict: (request) => {
        if (request.isPending) parts.counters.evicted++;
        this.#forget(request);
      },
    });
  }

  /** Serves a service ID. Throws ERR_ROCE_BUSY if it is served already. */
  listen(serviceId: bigint, handler: ServiceRequestHandler): void {
    if (this.#services.has(serviceId)) {
      throw new RoceError('ERR_ROCE_BUSY', `somebody serves datagrams on port ${serviceId & 0xffffn} already`);
    }
    this.#services.set(serviceId, handler);
  }

  /** Refuses new requests for the service ID. Repetitions of answered requests still get their answer. */
  unlisten(serviceId: bigint): void {
    this.#services.delete(serviceId);
  }

  /** Processes a SIDR_REQ. */
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
    this.#limiter.makeRoom('pending', source);
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
    this.#limiter.enter(request, 'pending', source);
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

  /** Drops a pending request; no effect on others. The peer is not told: an honest one repeats its request, which counts as new. */
  evict(request: ServiceRequest): void {
    if (request.isPending) this.#limiter.evict(request);
  }

  /** Answers a pending request and each of its repetitions. No effect if the request was dropped. */
  answer(request: ServiceRequest, answer: ServiceAnswer, now: number): void {
    if (!request.isPending) return;
    const { remote, requestId, serviceId, transactionId } = request;
    request.answer = buildMad('SIDR_REP', transactionId, { requestId, serviceId, ...answer });
    request.isPending = false;
    this.#limiter.makeRoom('admitted', remote);
    this.#limiter.enter(request, 'admitted', remote);
    this.#kept.arm(request, now + REPEATED_NS);
    this.#parts.mads.pass(remote, request.answer);
  }

  #forget(request: ServiceRequest): void {
    request.isPending = false;
    this.#byKey.delete(request.key);
    this.#kept.delete(request);
    this.#limiter.leave(request);
  }

  /** Number of requests that are pending, or whose answer may have to be repeated. */
  get size(): number {
    return this.#kept.size;
  }

  /** When {@link onDeadline} has something to do, or earlier; Infinity: never. */
  get nextDeadlineNs(): number {
    return this.#kept.nextDeadlineNs;
  }

  /** Forgets requests that the peer no longer repeats. */
  onDeadline(now: number): void {
    for (const request of this.#kept.due(now)) this.#forget(request);
  }
}
