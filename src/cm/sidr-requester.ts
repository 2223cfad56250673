/**
 * The side that asks for a datagram service: SIDR_REQ, sent again until its SIDR_REP comes (IBTA vol. 1 §12.11). The request ID is random, and only
 * the address that is asked learns it: one that does not see the request cannot answer it.
 */

import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { type Due, DueSet } from './due-set.js';
import { encodeIpPrivateData } from './ip-addressing.js';
import { buildMad, type MessageFields } from './messages.js';
import { DEFAULT_PKEY, type ProtocolParts, QPN_MIN } from './protocol-parts.js';
import { SIDR_VALID } from './reject-reason.js';
import { codeToNs } from './timing.js';

/** A request for a datagram service. */
export interface ServiceQuestion {
  /** IP address of the serving side. */
  readonly remote: IpAddress;
  /** Service ID of the requested service. */
  readonly serviceId: bigint;
  /** Source port in RDMA_PS_UDP. */
  readonly sourcePort: number;
  /** Private data for the serving program. */
  readonly privateData: Uint8Array;
}

/** The outcome of a request. Each request has exactly one. */
export type ServiceEvent =
  /** The fields give QPN and Q_Key. */
  | { readonly type: 'RESOLVED'; readonly fields: MessageFields<'SIDR_REP'> }
  /** The status gives the reason. */
  | { readonly type: 'REFUSED'; readonly fields: MessageFields<'SIDR_REP'> }
  /** No answer within all retries. */
  | { readonly type: 'UNREACHABLE' };

/** Receives the outcome of one request, from within the calls of `CmProtocol`. */
export type ServiceEventHandler = (event: ServiceEvent) => void;

/** A request without an answer. */
interface Asked extends Due {
  readonly requestId: number;
  readonly remote: IpAddress;
  /** The datagram, as it is sent each time. */
  readonly mad: Uint8Array;
  readonly onEvent: ServiceEventHandler;
  /** Number of retransmissions. */
  retries: number;
}

/** Pending requests of one `CmProtocol`. */
export class SidrRequester {
  readonly #parts: ProtocolParts;
  readonly #transactionBase: bigint;
  readonly #byId = new Map<number, Asked>();
  readonly #waiting = new DueSet<Asked>();

  constructor(parts: ProtocolParts) {
    this.#parts = parts;
    this.#transactionBase = BigInt(parts.options.random.u32()) << 32n;
  }

  /** Sends a SIDR_REQ and returns its request ID. `onEvent` gets the outcome. Throws ERR_ROCE_LIMIT if too many requests are pending. */
  ask({ remote, serviceId, sourcePort, privateData }: ServiceQuestion, onEvent: ServiceEventHandler, now: number) {
    const { random, address, limits } = this.#parts.options;
    if (this.#byId.size >= limits.endpoints) {
      throw new RoceError('ERR_ROCE_LIMIT', `${limits.endpoints} requests for services wait already`);
    }
    let requestId = 0;
    while (requestId === 0 || this.#byId.has(requestId)) requestId = random.u32();
    const mad = buildMad('SIDR_REQ', this.#transactionBase | BigInt(requestId), {
      requestId,
      pkey: DEFAULT_PKEY,
      serviceId,
      privateData: encodeIpPrivateData({ source: address, destination: remote, sourcePort }, privateData),
    });
    const asked: Asked = { requestId, remote, mad, onEvent, retries: 0, deadlineNs: Number.POSITIVE_INFINITY };
    this.#byId.set(requestId, asked);
    this.#waiting.add(asked);
    this.#sendAndWait(asked, now);
    return requestId;
  }

  #sendAndWait(asked: Asked, now: number): void {
    this.#waiting.arm(asked, now + codeToNs(this.#parts.options.timing.responseTimeout));
    this.#parts.mads.pass(asked.remote, asked.mad);
  }

  /** Forgets a request without an event. SIDR has no message that would tell the peer. */
  cancel(requestId: number): void {
    const asked = this.#byId.get(requestId);
    if (asked !== undefined) this.#forget(asked);
  }

  #forget(asked: Asked): void {
    this.#byId.delete(asked.requestId);
    this.#waiting.delete(asked);
  }

  /** Processes a SIDR_REP. */
  onReply(source: IpAddress, fields: MessageFields<'SIDR_REP'>): void {
    const { counters } = this.#parts;
    const asked = this.#byId.get(fields.requestId);
    const isValid = fields.status === SIDR_VALID;
    if (asked === undefined || !asked.remote.equals(source)) counters.unmatched++;
    else if (isValid && fields.qpn < QPN_MIN) counters.malformed++;
    else {
      this.#forget(asked);
      asked.onEvent({ type: isValid ? 'RESOLVED' : 'REFUSED', fields });
    }
  }

  /** When {@link onDeadline} has something to do, or earlier; Infinity: never. */
  get nextDeadlineNs(): number {
    return this.#waiting.nextDeadlineNs;
  }

  /** Retransmits what is due, and gives up after the last retry. */
  onDeadline(now: number): void {
    const { options, counters } = this.#parts;
    for (const asked of this.#waiting.due(now)) {
      if (this.#byId.get(asked.requestId) !== asked) continue; // Cancelled by the program that heard of another's end.
      if (asked.retries < options.timing.maxRetries) {
        asked.retries++;
        counters.retries++;
        this.#sendAndWait(asked, now);
      } else {
        this.#forget(asked);
        asked.onEvent({ type: 'UNREACHABLE' });
      }
    }
  }

  /** Ends all requests as UNREACHABLE. */
  close(): void {
    for (const asked of this.#waiting.all()) {
      this.#forget(asked);
      asked.onEvent({ type: 'UNREACHABLE' });
    }
  }
}
