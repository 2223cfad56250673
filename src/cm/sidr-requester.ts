/**
 * The requesting side of SIDR: repeats the SIDR_REQ until its SIDR_REP arrives (IBTA vol. 1 §12.11). The request ID is
 * random, and only the queried address receives it: others cannot answer.
 */

import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { type Due, DueSet } from './due-set.js';
import { encodeIpPrivateData } from './ip-addressing.js';
import { buildMad, type MessageFields } from './messages.js';
import { DEFAULT_PKEY, type ProtocolParts, QPN_MIN } from './protocol-parts.js';
import { SIDR_VALID } from './reject-reason.js';
import { codeToNs } from './timing.js';

export interface ServiceQuestion {
  readonly remote: IpAddress;
  readonly serviceId: bigint;
  readonly sourcePort: number;
  readonly privateData: Uint8Array;
}

export type ServiceEvent =
  | { readonly type: 'RESOLVED'; readonly fields: MessageFields<'SIDR_REP'> }
  | { readonly type: 'REFUSED'; readonly fields: MessageFields<'SIDR_REP'> }
  | { readonly type: 'UNREACHABLE' };

export type ServiceEventHandler = (event: ServiceEvent) => void;

interface Asked extends Due {
  readonly requestId: number;
  readonly remote: IpAddress;
  readonly mad: Uint8Array;
  readonly onEvent: ServiceEventHandler;
  retries: number;
}

export class SidrRequester {
  readonly #parts: ProtocolParts;
  readonly #transactionBase: bigint;
  readonly #byId = new Map<number, Asked>();
  readonly #waiting = new DueSet<Asked>();

  constructor(parts: ProtocolParts) {
    this.#parts = parts;
    this.#transactionBase = BigInt(parts.options.random.u32()) << 32n;
  }

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

  /** SIDR has no message to notify the peer. */
  cancel(requestId: number): void {
    const asked = this.#byId.get(requestId);
    if (asked !== undefined) this.#forget(asked);
  }

  #forget(asked: Asked): void {
    this.#byId.delete(asked.requestId);
    this.#waiting.delete(asked);
  }

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

  get nextDeadlineNs(): number {
    return this.#waiting.nextDeadlineNs;
  }

  onDeadline(now: number): void {
    const { options, counters } = this.#parts;
    for (const asked of this.#waiting.due(now)) {
      // Cancelled by the program, because another request has ended.
      if (this.#byId.get(asked.requestId) !== asked) continue;
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

  close(): void {
    for (const asked of this.#waiting.all()) {
      this.#forget(asked);
      asked.onEvent({ type: 'UNREACHABLE' });
    }
  }
}
