/**
 * One client from the server's side: bytes in, requests out. It is asked for the next request when there is room for one, so that a client
 * that sends faster than the disk works waits in its own socket.
 */

import { ByteQueue } from './byte-queue.js';
import type { NbdExport } from './nbd-export.js';
import { type Agreement, Negotiation } from './negotiation.js';
import { type NbdRequest, RequestReader } from './request.js';
import { CMD_DISC } from './wire.js';

/** `finish`: the client takes its leave, what is under way is still answered. `close`: it does not speak the protocol, or was refused. */
type Upcoming = NbdRequest | 'finish' | 'close';

/** Handshake and requests of one client. */
export class ServerSession<E extends NbdExport> {
  readonly #input: ByteQueue;
  readonly #negotiation: Negotiation<E>;
  readonly #requests: RequestReader;
  #agreement: Agreement<E> | undefined;

  /**
   * `send` is called at once with the greeting, and later with every answer of the handshake; `allocate` for the data of a WRITE that came in
   * several pieces.
   */
  constructor(exports: readonly E[], send: (bytes: Uint8Array) => void, allocate?: (bytes: number) => Uint8Array) {
    this.#input = new ByteQueue(allocate);
    this.#requests = new RequestReader(allocate);
    this.#negotiation = new Negotiation(exports, send);
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
      if (state !== 'transmission') return state === 'close' ? 'close' : undefined;
      this.#agreement = this.#negotiation.agreement;
    }
    const request = this.#requests.header(this.#input);
    if (request === 'bad-magic') return 'close';
    return request?.type === CMD_DISC ? 'finish' : request;
  }

  /** The request that is upcoming, with all its data; undefined where more input is needed. */
  next(): NbdRequest | undefined {
    return this.#requests.next(this.#input);
  }
}
