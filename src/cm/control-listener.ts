/**
 * A TCP port for control connections. In all our exchanges the client sends first, so a peer costs only a socket until
 * its first message has arrived. All peers are read from concurrently; those that are silent are pending, and bounded.
 */

import type { Socket } from 'node:net';
import { ConnectionLimiter, type ConnectionLimits, PENDING_LIMITS } from '../core/connection-limiter.js';
import { RoceError } from '../core/errors.js';
import { ControlChannel } from './control-channel.js';
import { type ChannelSecurity, secureAsServer, UntrustedPeerError } from './secure-channel.js';
import { TcpListener } from './tcp-listener.js';

const FIRST_MESSAGE_TIMEOUT_MS = 10_000;

export type EarlyEnd = 'mismatch' | 'untrusted' | 'timed_out' | 'evicted';

export interface ControlListenerEvents {
  /** The channel is the owner's from now on. */
  onPeer(channel: ControlChannel): void;
  onEarlyEnd?(end: EarlyEnd, peer: string, error: RoceError): void;
  onTrouble?(error: RoceError): void;
}

export interface ControlListenerLimits {
  /** Time from the connection to the end of its first message. Default 10 s. */
  readonly firstMessageTimeoutMs?: number;
  /** Connections without a first message. */
  readonly pending?: ConnectionLimits;
}

export class ControlListener {
  readonly #events: ControlListenerEvents;
  readonly #firstMessageTimeoutMs: number;
  readonly #pending: ConnectionLimiter<ControlChannel>;
  #tcp!: TcpListener;

  private constructor(
    events: ControlListenerEvents,
    { firstMessageTimeoutMs = FIRST_MESSAGE_TIMEOUT_MS, pending = PENDING_LIMITS }: ControlListenerLimits,
  ) {
    this.#events = events;
    this.#firstMessageTimeoutMs = firstMessageTimeoutMs;
    this.#pending = new ConnectionLimiter<ControlChannel>({
      quotas: [{ states: ['pending'], ...pending }],
      evict: (channel) => this.#onEvicted(channel),
    });
  }

  static async open(
    host: string,
    port: number,
    events: ControlListenerEvents,
    security?: ChannelSecurity,
    limits: ControlListenerLimits = {},
  ): Promise<ControlListener> {
    const listener = new ControlListener(events, limits);
    const secure = security && ((socket: Socket) => secureAsServer(socket, security));
    listener.#tcp = await TcpListener.open(
      { host, port },
      {
        onSocket: (socket) => void listener.#hear(new ControlChannel(socket, secure)),
        makeRoom: () => listener.#pending.evictOldest('pending'),
        onTrouble: (error) => events.onTrouble?.(error),
      },
    );
    return listener;
  }

  get port(): number {
    return this.#tcp.port;
  }

  close(): void {
    this.#tcp.close();
    for (const channel of this.#pending.connections) {
      this.#pending.leave(channel);
      turnAway(channel, 'the listener is closed');
    }
  }

  async #hear(channel: ControlChannel): Promise<void> {
    const { peer, remoteAddress } = channel;
    if (remoteAddress === undefined) return;
    const receiveFirst = async () => channel.unread(await channel.receive(this.#firstMessageTimeoutMs));
    const isHere = await this.#pending.handshake(channel, remoteAddress, receiveFirst, (error) => {
      channel.close();
      const isMismatch = error.code === 'ERR_ROCE_MISMATCH';
      const end = error instanceof UntrustedPeerError ? 'untrusted' : isMismatch ? 'mismatch' : 'timed_out';
      this.#events.onEarlyEnd?.(end, peer, error);
    });
    if (isHere) this.#events.onPeer(channel);
  }

  #onEvicted(channel: ControlChannel): void {
    const { peer } = channel;
    const why = 'too many connections say nothing, and this one was the oldest';
    turnAway(channel, why);
    this.#events.onEarlyEnd?.('evicted', peer, new RoceError('ERR_ROCE_CONNECT', `${peer}: ${why}`));
  }
}

function turnAway(channel: ControlChannel, why: string): void {
  channel.refuse(why, { busy: true });
  channel.abort();
}
