/**
 * The connection protocol (IBTA vol. 1 §12.9): both sides of REQ, REP, RTU, DREQ and DREP, with retransmission over a
 * lossy QP1, and both sides of SIDR, which resolves datagram services (§12.11). Without I/O: datagrams, decisions and
 * the time come in; datagrams and events go out. This is the facade. The parts are `active-side`, `passive-side`,
 * retransmission of MADs, and teardown over one table of endpoints, and separately `sidr-requester` and
 * `sidr-responder`.
 *
 * Invariants: an endpoint is in the table until its TIMEWAIT is over, so that late datagrams find it; a datagram counts
 * only if it comes from the address of the endpoint's peer; every wait has a local deadline; one datagram is answered
 * by at most one.
 */

import type { IpAddress } from '../packet/address.js';
import { ActiveSide, type ConnectionResources, type RequestParameters } from './active-side.js';
import type { CmEndpoint, CmEventHandler } from './endpoint.js';
import { EndpointTable } from './endpoint-table.js';
import { MadRetransmission } from './mad-retransmission.js';
import { MadSender } from './mad-sender.js';
import { type CmMad, type MadFault, parseMad } from './messages.js';
import { PassiveSide, type RequestHandler } from './passive-side.js';
import type { CmCounters, CmProtocolOptions, ProtocolParts } from './protocol-parts.js';
import { type ServiceEventHandler, type ServiceQuestion, SidrRequester } from './sidr-requester.js';
import {
  type ServiceAnswer,
  type ServiceRequest,
  type ServiceRequestHandler,
  SidrResponder,
} from './sidr-responder.js';
import { Teardown } from './teardown.js';

export class CmProtocol {
  readonly counters: CmCounters = {
    received: 0,
    malformed: 0,
    badAddress: 0,
    unmatched: 0,
    duplicates: 0,
    sent: 0,
    retries: 0,
    withheld: 0,
    refused: 0,
    refusedAddress: 0,
    expired: 0,
    evicted: 0,
    deferred: 0,
    timewaitCut: 0,
  };
  readonly #parts: ProtocolParts;
  readonly #retransmission: MadRetransmission;
  readonly #active: ActiveSide;
  readonly #passive: PassiveSide;
  readonly #teardown: Teardown;
  readonly #requester: SidrRequester;
  readonly #responder: SidrResponder;

  constructor(options: CmProtocolOptions) {
    const { random, limits, send } = options;
    const { counters } = this;
    const caGuid = (BigInt(random.u32()) << 32n) | BigInt(random.u32());
    const table = new EndpointTable(limits, random, counters);
    this.#parts = { options, caGuid, counters, table, mads: new MadSender(caGuid, counters, send) };
    this.#retransmission = new MadRetransmission(this.#parts);
    this.#teardown = new Teardown(this.#parts, this.#retransmission);
    this.#active = new ActiveSide(this.#parts, this.#retransmission, this.#teardown);
    this.#passive = new PassiveSide(this.#parts, this.#retransmission, this.#teardown);
    this.#requester = new SidrRequester(this.#parts);
    this.#responder = new SidrResponder(this.#parts);
  }

  listen(serviceId: bigint, handler: RequestHandler): void {
    this.#passive.listen(serviceId, handler);
  }

  unlisten(serviceId: bigint): void {
    this.#passive.unlisten(serviceId);
  }

  connect(parameters: RequestParameters, onEvent: CmEventHandler, now: number): CmEndpoint {
    return this.#active.connect(parameters, onEvent, now);
  }

  reply(endpoint: CmEndpoint, resources: ConnectionResources, now: number): void {
    this.#passive.reply(endpoint, resources, now);
  }

  confirm(endpoint: CmEndpoint, now: number): void {
    this.#active.confirm(endpoint, now);
  }

  communicationEstablished(endpoint: CmEndpoint): void {
    this.#passive.communicationEstablished(endpoint);
  }

  reject(endpoint: CmEndpoint, privateData: Uint8Array, now: number): void {
    this.#teardown.reject(endpoint, privateData, now);
  }

  disconnect(endpoint: CmEndpoint, now: number): void {
    this.#teardown.disconnect(endpoint, now);
  }

  abandon(endpoint: CmEndpoint, now: number): void {
    this.#teardown.abandon(endpoint, now);
  }

  isValidated(endpoint: CmEndpoint): boolean {
    return endpoint.isValidated || this.#parts.table.validatedAddresses.has(endpoint.remote, endpoint.remoteCaGuid);
  }

  /** As {@link EndpointTable.evict}. */
  evict(endpoint: CmEndpoint): void {
    this.#parts.table.evict(endpoint);
  }

  liveEndpoints(): CmEndpoint[] {
    return this.#parts.table.all().filter(({ state }) => state !== 'TIMEWAIT');
  }

  listenForDatagrams(serviceId: bigint, handler: ServiceRequestHandler): void {
    this.#responder.listen(serviceId, handler);
  }

  unlistenForDatagrams(serviceId: bigint): void {
    this.#responder.unlisten(serviceId);
  }

  answer(request: ServiceRequest, answer: ServiceAnswer, now: number): void {
    this.#responder.answer(request, answer, now);
  }

  /** As {@link SidrResponder.evict}. */
  evictRequest(request: ServiceRequest): void {
    this.#responder.evict(request);
  }

  ask(question: ServiceQuestion, onEvent: ServiceEventHandler, now: number): number {
    return this.#requester.ask(question, onEvent, now);
  }

  cancel(requestId: number): void {
    this.#requester.cancel(requestId);
  }

  closeRequests(): void {
    this.#requester.close();
  }

  get serviceRequests(): number {
    return this.#responder.size;
  }

  get nextDeadlineNs(): number {
    const { table } = this.#parts;
    return Math.min(table.nextDeadlineNs, this.#requester.nextDeadlineNs, this.#responder.nextDeadlineNs);
  }

  /** Call it at {@link nextDeadlineNs}; an earlier call is harmless. */
  onDeadline(now: number): void {
    this.#retransmission.onDeadline(now);
    this.#requester.onDeadline(now);
    this.#responder.onDeadline(now);
  }

  /** Never throws. */
  receive(source: IpAddress, bytes: Uint8Array, now: number): void {
    const { counters } = this;
    counters.received++;
    if (!source.isUnicast) {
      counters.badAddress++;
      return;
    }
    const mad: CmMad | MadFault = parseMad(bytes);
    if (typeof mad === 'string') counters.malformed++;
    else this.#take(source, mad, now);
  }

  #take(source: IpAddress, mad: CmMad, now: number): void {
    const { transactionId } = mad;
    switch (mad.name) {
      case 'REQ':
        this.#passive.onRequest(source, transactionId, mad.fields, now);
        break;
      case 'REP':
        this.#active.onReply(source, transactionId, mad.fields, now);
        break;
      case 'RTU':
        this.#passive.onReadyToUse(source, transactionId, mad.fields);
        break;
      case 'MRA':
        this.#retransmission.onReceiptAcknowledged(source, mad.fields, now);
        break;
      case 'REJ':
        this.#teardown.onReject(source, mad.fields, now);
        break;
      case 'DREQ':
        this.#teardown.onDisconnectRequest(source, transactionId, mad.fields, now);
        break;
      case 'DREP':
        this.#teardown.onDisconnectReply(source, mad.fields, now);
        break;
      case 'SIDR_REQ':
        this.#responder.onRequest(source, transactionId, mad.fields, now);
        break;
      case 'SIDR_REP':
        this.#requester.onReply(source, mad.fields);
    }
  }
}
