/**
 * What a session needs of a connection, whichever transport it runs on. A connection carries messages and data; it knows nothing of sessions.
 *
 * Failing is final: a channel reports it once, by `onFailure`, and from then on neither sends nor reports anything. `close` may be called at
 * any time; when it resolves, no peer can reach memory through this connection any more.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import type { DataChecks } from './data-checks.js';
import type { SkRequest } from './request.js';
import type { SkResponse } from './response.js';

/** A request on its way out, without what the transport adds to it. */
export interface SkCall {
  /** What is asked. */
  readonly request: Omit<SkRequest, 'descriptor' | 'dataCrc'>;
  /** Data of a WRITE, body of a RESUME; must not change until the call is answered or the channel closed. */
  readonly data: Uint8Array | undefined;
  /** Where the caller wants the data of a READ. A transport that can moves it there; otherwise the caller copies it. */
  readonly into?: Uint8Array | undefined;
  /** CRCs of `data`. */
  readonly checks: DataChecks;
}

/** An answer. Its bytes are valid during the callback only. */
export interface SkReply {
  /** Status and header fields. */
  readonly response: SkResponse;
  /** List of checks behind the header. */
  readonly list: Uint8Array;
  /** What the server moved: data of a READ, body of a RESUME. */
  readonly data: Uint8Array;
}

/** The client's end. */
export interface SkClientChannel {
  /** Which transport this is. */
  readonly transport: HostTransport;
  /** Takes each answer, in any order of slots. */
  onReply: (reply: SkReply) => void;
  /** Called once, when the channel has failed. */
  onFailure: (error: Error) => void;
  /** At most one call a slot at a time, and one beside the slots. */
  send(call: SkCall): void;
  /** Takes back the peer's access to the memory of the slot's call, which stays unanswered. Resolves when the access has ended. */
  withdraw(slot: number): Promise<void>;
  /** Ends the connection; unanswered calls stay unanswered. */
  close(): Promise<void>;
}

/** A request that came in, with what it brought. */
export interface SkIncoming {
  /** What is asked. */
  readonly request: SkRequest;
  /** List of checks behind the header; valid until `release`. */
  readonly list: Uint8Array;
  /** Data that came with the message; valid until `release`. */
  readonly inline: Uint8Array | undefined;
  /** The message is done with: its receive buffer takes the next one. Safe to call twice. */
  release(): void;
}

/** Memory for the data of one request. */
export interface DataBuffer {
  /** The memory. */
  readonly bytes: Uint8Array;
  /** Gives it back. Safe to call twice. */
  release(): void;
}

/** The server's end. */
export interface SkServerChannel {
  /** Which transport this is. */
  readonly transport: HostTransport;
  /** Takes each request, in the order of the connection. */
  onRequest: (incoming: SkIncoming) => void;
  /** Called once, when the channel has failed. */
  onFailure: (error: Error) => void;
  /** Memory this channel can move data from and to; at once where there is some. */
  buffer(bytes: number): DataBuffer | Promise<DataBuffer>;
  /**
   * Fetches bytes `[from, from + length)` of the data of a WRITE that is not inline to their place in `into`. Rejects when the channel is gone
   * and can touch the memory no more.
   */
  pull(request: SkRequest, into: DataBuffer, from: number, length: number): Promise<void>;
  /** Begins to move the data of a READ, which must not change any more; `reply` with the same data follows at once. */
  move(request: SkRequest, data: DataBuffer): void;
  /**
   * Answers. `data` (from `buffer`, or any bytes for bodies of at most RESPONSE_BODY_BYTES_MAX) moves before the response, or in it.
   * Resolves when its memory is free again, also when the channel fails.
   */
  reply(request: SkRequest, response: SkResponse, list: Uint8Array, data: DataBuffer | undefined): Promise<void>;
  /** Ends the connection; when it resolves nothing of it touches memory any more. */
  close(): Promise<void>;
}
