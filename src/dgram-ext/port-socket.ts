/**
 * The life of a port's socket, which is the same whatever the datagrams carry: opened once, closed once, its batches and its counters.
 *
 * Invariants: a batch is reused only when the kernel has taken all of it; nothing is called back after `close`.
 */

import type { RemoteInfo, Socket } from 'node:dgram';
import { RoceError } from '../core/errors.js';
import type { PortCounters, TxBatch } from '../port/datagram.js';
import type { BatchPool } from './batch-pool.js';
import { type BoundSocket, type BoundSocketOptions, bindSocket, closeSocket } from './bound-socket.js';

/** What the owner of the socket does with what comes. */
export interface PortSocketHandlers {
  /** One datagram; the bytes are valid during the call. */
  onMessage(bytes: Uint8Array, from: RemoteInfo): void;
  /** An error that is not about one datagram. */
  onError(error: Error): void;
}

/** A socket, its batches and its counters. */
export class PortSocket {
  /** Counted here, but for `rxDatagrams`, which the owner counts. */
  readonly counters: PortCounters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  readonly #pool: BatchPool;
  readonly #handlers: PortSocketHandlers;
  #socket: Socket | undefined;
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new';
  #closing: Promise<void> | undefined;

  constructor(pool: BatchPool, handlers: PortSocketHandlers) {
    this.#pool = pool;
    this.#handlers = handlers;
  }

  /** Bound, and not closed. */
  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Rejects with ERR_ROCE_IO, ERR_ROCE_INVALID_STATE when called again, ERR_ROCE_CLOSED when closed meanwhile. */
  async open(options: BoundSocketOptions): Promise<BoundSocket> {
    if (this.#state !== 'new') throw new RoceError('ERR_ROCE_INVALID_STATE', `the port is already ${this.#state}`);
    this.#state = 'opening';
    const bound = await bindSocket(options).catch((error: unknown) => {
      this.#state = 'closed';
      throw error;
    });
    if (this.#isClosed()) {
      await closeSocket(bound.socket);
      throw new RoceError('ERR_ROCE_CLOSED', 'the port was closed while it was being opened');
    }
    this.#socket = bound.socket;
    this.#state = 'open';
    bound.socket.on('message', (bytes, from) => {
      if (!this.#isClosed()) this.#handlers.onMessage(bytes, from);
    });
    bound.socket.on('error', (error) => {
      if (!this.#isClosed()) this.#handlers.onError(error);
    });
    return bound;
  }

  /** An empty batch, or undefined while all wait for the kernel. */
  beginBatch(): TxBatch | undefined {
    return this.isOpen && this.#socket !== undefined ? this.#pool.take(this.#socket.getSendQueueCount()) : undefined;
  }

  /** Gives one datagram to the kernel; counted as sent unless the kernel refuses it. */
  send(datagram: Uint8Array, udpPort: number, host: string): void {
    if (!this.isOpen) return;
    this.counters.txDatagrams++;
    this.#socket?.send(datagram, udpPort, host, this.#onSent);
  }

  /** The same for what the port sends on its own account, such as an ARP packet: not counted, and a refusal is not noticed. */
  sendControl(datagram: Uint8Array, udpPort: number, host: string): void {
    if (this.isOpen) this.#socket?.send(datagram, udpPort, host);
  }

  /** Takes a batch back when all its datagrams have gone through {@link send}. */
  endBatch(batch: TxBatch): void {
    if (this.isOpen && this.#socket !== undefined) this.#pool.give(batch, this.#socket.getSendQueueCount());
  }

  /** Closes the socket. Safe to call twice, and before it is open. */
  close(): Promise<void> {
    this.#state = 'closed';
    this.#closing ??= this.#socket === undefined ? Promise.resolve() : closeSocket(this.#socket);
    return this.#closing;
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Without it node:dgram swallows refusals (an unreachable network, a datagram too long); it costs 4 % of a bare send. */
  readonly #onSent = (error: Error | null): void => {
    if (error === null || this.#isClosed()) return;
    this.counters.txDatagrams--;
    this.counters.txErrors++;
  };
}
