/** One client at the server. The next request is read only when there is room for it (backpressure by TCP). */

import { ByteQueue } from './byte-queue.js';
import type { NbdExport } from './nbd-export.js';
import { type NbdRequest, PART_BYTES, RequestReader, refusalOf } from './nbd-request.js';
import { type NbdAgreement, NbdNegotiation, type TlsPolicy } from './negotiation.js';
import { CMD_DISC } from './wire.js';

/**
 * `starttls`: the rest is over TLS, see {@link NbdServerSession.secured}. `finish`: the client has disconnected
 * cleanly; requests in flight are still answered. `close`: a protocol violation or refusal.
 */
type Upcoming = NbdRequest | 'starttls' | 'finish' | 'close';

export interface NbdServerSessionOptions {
  readonly allocate?: (bytes: number) => Uint8Array;
  readonly tls?: TlsPolicy;
}

export class NbdServerSession<E extends NbdExport> {
  readonly #input: ByteQueue;
  readonly #negotiation: NbdNegotiation<E>;
  readonly #allocate: ((bytes: number) => Uint8Array) | undefined;
  #requests: RequestReader | undefined;
  #agreement: NbdAgreement<E> | undefined;

  constructor(
    exports: readonly E[],
    send: (bytes: Uint8Array) => void,
    { allocate, tls = 'off' }: NbdServerSessionOptions = {},
  ) {
    this.#input = new ByteQueue(allocate);
    this.#allocate = allocate;
    this.#negotiation = new NbdNegotiation(exports, send, tls);
  }

  get agreement(): NbdAgreement<E> | undefined {
    return this.#agreement;
  }

  get bufferedBytes(): number {
    return this.#input.length;
  }

  /** Takes bytes, which must not change afterwards. */
  push(bytes: Uint8Array): void {
    this.#input.push(bytes);
  }

  upcoming(): Upcoming | undefined {
    if (this.#agreement === undefined) {
      const state = this.#negotiation.advance(this.#input);
      if (state === 'negotiating') return undefined;
      // Data sent in the clear after STARTTLS must not pass for TLS data.
      if (state === 'starttls') return this.#input.length > 0 ? 'close' : state;
      if (state === 'close') return state;
      const agreement = this.#negotiation.agreement;
      const isAligned = PART_BYTES % agreement.export.blockBytes === 0;
      const mayPart = (request: NbdRequest) => isAligned && refusalOf(request, agreement) === undefined;
      this.#agreement = agreement;
      this.#requests = new RequestReader(agreement.extendedHeaders, this.#allocate, mayPart);
    }
    const request = this.#requests!.header(this.#input);
    if (request === 'broken') return 'close';
    return request?.type === CMD_DISC ? 'finish' : request;
  }

  secured(): void {
    this.#negotiation.secured();
  }

  next(): NbdRequest | undefined {
    return this.#requests!.next(this.#input);
  }
}
