/**
 * A TCP port for the exchanges of the C programs. Their client sends first. If the listener knows the first message, it
 * reads from all peers concurrently, and a silent or malformed one delays no other.
 */

import type { Socket } from 'node:net';
import { ConnectionLimiter, PENDING_LIMITS } from '../core/connection-limiter.js';
import { RoceError } from '../core/errors.js';
import { FixedChannel } from './fixed-channel.js';
import { printable } from './printable.js';
import { TcpListener } from './tcp-listener.js';

/** Such programs serve one peer at a time. */
const WAITING_MAX = 16;

export interface FirstMessage {
  readonly bytes: number;
  isRight(message: Buffer): boolean;
}

export interface FixedListenerOptions {
  readonly host?: string;
  readonly firstMessage?: FirstMessage;
  onRefusedPeer?(peer: string, error: RoceError): void;
}

export class FixedListener {
  readonly #options: FixedListenerOptions;
  readonly #pending = new ConnectionLimiter<FixedChannel>({
    quotas: [{ states: ['pending'], ...PENDING_LIMITS }],
    evict: (channel) => channel.abort(),
  });
  readonly #waiting: FixedChannel[] = [];
  #accepter: ((channel: FixedChannel) => void) | undefined;
  #tcp!: TcpListener;

  private constructor(options: FixedListenerOptions) {
    this.#options = options;
  }

  static async open(port: number, options: FixedListenerOptions = {}): Promise<FixedListener> {
    const listener = new FixedListener(options);
    listener.#tcp = await TcpListener.open(
      { host: options.host, port },
      {
        onSocket: (socket) => listener.#onSocket(socket),
        makeRoom: () => listener.#pending.evictOldest('pending'),
      },
    );
    return listener;
  }

  get port(): number {
    return this.#tcp.port;
  }

  accept(signal?: AbortSignal): Promise<FixedChannel> {
    for (let channel = this.#waiting.shift(); channel !== undefined; channel = this.#waiting.shift()) {
      if (channel.isOpen) return Promise.resolve(channel);
      channel.abort();
    }
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const onAbort = () => {
        this.#accepter = undefined;
        reject(signal!.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#accepter = (channel) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(channel);
      };
    });
  }

  #onSocket(socket: Socket): void {
    const channel = new FixedChannel(socket);
    const { firstMessage } = this.#options;
    if (firstMessage === undefined) this.#offer(channel);
    else void this.#hear(channel, firstMessage);
  }

  #offer(channel: FixedChannel): void {
    const accepter = this.#accepter;
    this.#accepter = undefined;
    if (accepter !== undefined) accepter(channel);
    else if (this.#waiting.length < WAITING_MAX) this.#waiting.push(channel);
    else channel.abort();
  }

  async #hear(channel: FixedChannel, { bytes, isRight }: FirstMessage): Promise<void> {
    const { remoteAddress } = channel;
    if (remoteAddress === undefined) return;
    const readFirst = async () => {
      const message = await channel.read(bytes, 'its first message');
      if (!isRight(message)) {
        const text = `it says ${JSON.stringify(printable(message.toString('latin1')))}`;
        throw new RoceError('ERR_ROCE_MISMATCH', text);
      }
      channel.unread(message);
    };
    const isHere = await this.#pending.handshake(channel, remoteAddress, readFirst, (error) => {
      channel.abort();
      this.#options.onRefusedPeer?.(channel.peer, error);
    });
    if (isHere) this.#offer(channel);
  }

  close(): void {
    this.#tcp.close();
    for (const channel of this.#waiting.splice(0)) channel.abort();
    for (const channel of this.#pending.connections) this.#pending.evict(channel);
  }
}
