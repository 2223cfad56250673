/**
 * One client from the server's side: bytes in, requests out. It is asked for the next request when there is room for one, so that a client
 * that sends faster than the disk works waits in its own socket.
 */

import { ByteQueue } from './byte-queue.js';
import type { NbdExport } from './nbd-export.js';
import { type Agreement, Negotiation, type TlsPolicy } from './negotiation.js';
import { type NbdRequest, RequestReader } from './request.js';
import { CMD_DISC } from './wire.js';

/**
 * `starttls`: the rest is said over TLS, see {@link ServerSession.secured}. `finish`: the client takes its leave, what is under way is still
 * answered. `close`: it does not speak the protocol, or was refused.
 */
type Upcoming = NbdRequest | 'starttls' | 'finish' | 'close';

/** How a session is held. */
export interface ServerSessionOptions {
  /** Room for the data of a WRITE that came in several pieces. Default: new memory. */
  readonly allocate?: (bytes: number) => Uint8Array;
  /** Default `off`. */
  readonly tls?: TlsPolicy;
}

/** Handshake and requests of one client. */
export class ServerSession<E extends NbdExport> {
  readonly #input: ByteQueue;
  readonly #negotiation: Negotiation<E>;
  readonly #allocate: ((bytes: number) => Uint8Array) | undefined;
  #requests: RequestReader | undefined;
  #agreement: Agreement<E> | undefined;

  /** `send` is called at once with the greeting, and later with every answer of the handshake. */
  constructor(
    exports: readonly E[],
    send: (bytes: Uint8Array) => void,
    { allocate, tls = 'off' }: ServerSessionOptions = {},
  ) {
    this.#input = new ByteQueue(allocate);
    this.#allocate = allocate;
    this.#negotiation = new Negotiation(exports, send, tls);
  }

  /** What was agreed on; undefined before the transmission phase. */
  get agreement(): Agreement<E> | undefined {
    return this.#agreement;
  }

  /** Bytes received and not yet part of a request. */
  get bufferedBytes(): number {
    return this.#input.length;
  }

  /** Takes bytes, which must not change any more. */
  push(bytes: Uint8Array): void {
    this.#input.push(bytes);
  }

  /** The next thing to do, a request without its data; undefined where more input is needed. */
  upcoming(): Upcoming | undefined {
    if (this.#agreement === undefined) {
      const state = this.#negotiation.advance(this.#input);
      if (state === 'negotiating') return undefined;
      // What was sent in the clear behind STARTTLS must not pass for something that came over TLS.
      if (state === 'starttls') return this.#input.length > 0 ? 'close' : state;
      if (state === 'close') return state;
      this.#agreement = this.#negotiation.agreement;
      this.#requests = new RequestReader(this.#agreement.extendedHeaders, this.#allocate);
    }
    const request = this.#requests!.header(this.#input);
    if (request === 'broken') return 'close';
    return request?.type === CMD_DISC ? 'finish' : request;
  }

  /** After `starttls`, once TLS has begun: the handshake begins anew. */
  secured(): void {
    this.#negotiation.secured();
  }

  /** The request that is upcoming, with all its data; undefined where more input is needed. */
  next(): NbdRequest | undefined {
    return this.#requests!.next(this.#input);
  }
}
