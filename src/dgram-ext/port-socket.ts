/** Invariants: a batch is reused only when the kernel has taken all of it; nothing is called back after `close`. */

import type { RemoteInfo, Socket } from 'node:dgram';
import { RoceError } from '../core/errors.js';
import type { PortCounters, TxBatch } from '../port/datagram.js';
import type { BatchPool } from './batch-pool.js';
import { type BoundSocket, type BoundSocketOptions, bindSocket, closeSocket } from './bound-socket.js';

export interface PortSocketHandlers {
  onMessage(bytes: Uint8Array, from: RemoteInfo): void;
  onError(error: Error): void;
}

export class PortSocket {
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

  get isOpen(): boolean {
    return this.#state === 'open';
  }

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

  beginBatch(): TxBatch | undefined {
    return this.isOpen && this.#socket !== undefined ? this.#pool.take(this.#socket.getSendQueueCount()) : undefined;
  }

  send(datagram: Uint8Array, udpPort: number, host: string): void {
    if (!this.isOpen) return;
    this.counters.txDatagrams++;
    this.#socket?.send(datagram, udpPort, host, this.#onSent);
  }

  /**
   * The same for packets of the port itself, such as ARP: they are not counted, and errors are ignored.
   */
  sendControl(datagram: Uint8Array, udpPort: number, host: string): void {
    if (this.isOpen) this.#socket?.send(datagram, udpPort, host);
  }

  endBatch(batch: TxBatch): void {
    if (this.isOpen && this.#socket !== undefined) this.#pool.give(batch, this.#socket.getSendQueueCount());
  }

  close(): Promise<void> {
    this.#state = 'closed';
    this.#closing ??= this.#socket === undefined ? Promise.resolve() : closeSocket(this.#socket);
    return this.#closing;
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  /**
   * Without it node:dgram swallows refusals (an unreachable network, a datagram too long); it costs 4 % of a bare send.
   */
  readonly #onSent = (error: Error | null): void => {
    if (error === null || this.#isClosed()) return;
    this.counters.txDatagrams--;
    this.counters.txErrors++;
  };
}
