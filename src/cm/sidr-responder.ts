/**
 * The serving side of SIDR (IBTA vol. 1 §12.11). A request proves nothing about its sender, so it gets at most one
 * datagram of the same size and bounded memory. An answer is kept and repeated as long as the peer may repeat the
 * request.
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

/** Time for the program to decide, and for which an answer is kept. */
const REPEATED_NS = (LINUX_TIMING.maxRetries + 1) * codeToNs(LINUX_TIMING.responseTimeout);

export interface ServiceRequest extends Due {
  readonly remote: IpAddress;
  readonly serviceId: bigint;
  readonly endpoints: IpEndpoints;
  readonly userData: Uint8Array;
  readonly key: string;
  readonly requestId: number;
  readonly transactionId: bigint;
  isPending: boolean;
  answer: Uint8Array;
}

export type ServiceAnswer = Pick<MessageFields<'SIDR_REP'>, 'status' | 'qpn' | 'qkey' | 'privateData'>;

export type ServiceRequestHandler = (request: ServiceRequest) => boolean;

export class SidrResponder {
  readonly #parts: ProtocolParts;
  readonly #services = new Map<bigint, ServiceRequestHandler>();
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

  listen(serviceId: bigint, handler: ServiceRequestHandler): void {
    if (this.#services.has(serviceId)) {
      throw new RoceError('ERR_ROCE_BUSY', `somebody serves datagrams on port ${serviceId & 0xffffn} already`);
    }
    this.#services.set(serviceId, handler);
  }

  /** Repetitions of answered requests still get their answer. */
  unlisten(serviceId: bigint): void {
    this.#services.delete(serviceId);
  }

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

  /** The peer is not notified: an honest one repeats its request, which counts as new. */
  evict(request: ServiceRequest): void {
    if (request.isPending) this.#limiter.evict(request);
  }

  /** No effect if the request was dropped. */
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

  get size(): number {
    return this.#kept.size;
  }

  get nextDeadlineNs(): number {
    return this.#kept.nextDeadlineNs;
  }

  onDeadline(now: number): void {
    for (const request of this.#kept.due(now)) this.#forget(request);
  }
}
