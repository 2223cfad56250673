/**
 * Failing is final: a channel reports it once, by `onFailure`, and from then on neither sends nor reports anything.
 * `close` may be called at any time; when it resolves, no peer can access memory through this connection.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import type { DataChecks } from './data-checks.js';
import type { SkRequest } from './request.js';
import type { SkResponse } from './response.js';

export interface SkCall {
  readonly request: Omit<SkRequest, 'descriptor' | 'dataCrc'>;
  /** Data of a WRITE, body of a RESUME; must not change until the call is answered or the channel closed. */
  readonly data: Uint8Array | undefined;
  /** A transport that can moves it there; otherwise the caller copies it. */
  readonly into?: Uint8Array | undefined;
  readonly checks: DataChecks;
}

/** Its bytes are valid during the callback only. */
export interface SkReply {
  readonly response: SkResponse;
  readonly list: Uint8Array;
  readonly data: Uint8Array;
}

export interface SkClientChannel {
  readonly transport: HostTransport;
  onReply: (reply: SkReply) => void;
  onFailure: (error: Error) => void;
  send(call: SkCall): void;
  /** Resolves when the access has ended. */
  withdraw(slot: number): Promise<void>;
  close(): Promise<void>;
}

export interface SkIncoming {
  readonly request: SkRequest;
  readonly list: Uint8Array;
  readonly inline: Uint8Array | undefined;
  /** Safe to call twice. */
  release(): void;
}

export interface DataBuffer {
  readonly bytes: Uint8Array;
  /** Safe to call twice. */
  release(): void;
}

export interface SkServerChannel {
  readonly transport: HostTransport;
  onRequest: (incoming: SkIncoming) => void;
  onFailure: (error: Error) => void;
  buffer(bytes: number): DataBuffer | Promise<DataBuffer>;
  /** Rejects when the channel has ended and can no longer access the memory. */
  pull(request: SkRequest, into: DataBuffer, from: number, length: number): Promise<void>;
  /**
   * Begins to move the data of a READ, which must not change afterwards; `reply` with the same data follows at once.
   */
  move(request: SkRequest, data: DataBuffer): void;
  /**
   * `data` (from `buffer`, or any bytes for bodies of at most RESPONSE_BODY_BYTES_MAX) moves before the response, or in
   * it. Resolves when its memory is free again, also when the channel fails.
   */
  reply(request: SkRequest, response: SkResponse, list: Uint8Array, data: DataBuffer | undefined): Promise<void>;
  close(): Promise<void>;
}
