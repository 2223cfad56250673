/**
 * A TCP port for control connections. The client speaks first in every exchange of ours, so nobody costs more than a socket until a first
 * message is here. All peers are read from concurrently; those that are silent are pending, and bounded.
 */

import type { Socket } from 'node:net';
import { ConnectionLimiter, PENDING_LIMITS } from '../core/connection-limiter.js';
import { RoceError } from '../core/errors.js';
import { ControlChannel } from './control-channel.js';
import { type ChannelSecurity, secureAsServer, UntrustedPeerError } from './secure-channel.js';
import { TcpListener } from './tcp-listener.js';

/** From the connection to the end of its first message, however it trickles in. */
const FIRST_MESSAGE_TIMEOUT_MS = 10_000;

/** Why a connection ended before its first message was handed out. */
export type EarlyEnd =
  /** The first line was none of an exchange of ours. */
  | 'mismatch'
  /** It did not prove that it is somebody who is let in. */
  | 'untrusted'
  /** No whole message came in time, or the peer left before. */
  | 'timed_out'
  /** It was silent, and the oldest when another peer needed its place. */
  | 'evicted';

/** What a control listener tells its owner. */
export interface ControlListenerEvents {
  /** A peer whose first message is here, to be received. The channel is the owner's from now on. */
  onPeer(channel: ControlChannel): void;
  /** A connection that has ended before. `peer` is its `host:port`. */
  onEarlyEnd?(end: EarlyEnd, peer: string, error: RoceError): void;
  /** A connection was turned away because this process has no descriptor, or no memory, for it. */
  onTrouble?(error: RoceError): void;
}

/** Accepts control connections until closed. */
export class ControlListener {
  readonly #events: ControlListenerEvents;
  readonly #firstMessageTimeoutMs: number;
  readonly #pending = new ConnectionLimiter<ControlChannel>({
    quotas: [{ states: ['pending'], ...PENDING_LIMITS }],
    evict: (channel) => this.#onEvicted(channel),
  });
  #tcp!: TcpListener;

  private constructor(events: ControlListenerEvents, firstMessageTimeoutMs: number) {
    this.#events = events;
    this.#firstMessageTimeoutMs = firstMessageTimeoutMs;
  }

  /**
   * Port 0 lets the system choose. `security`: peers prove themselves before their first message. A first message has to be complete within `firstMessageTimeoutMs`, 10 s by default. Rejects with ERR_ROCE_IO when the
   * port is taken.
   */
  static async open(
    host: string,
    port: number,
    events: ControlListenerEvents,
    security?: ChannelSecurity,
    firstMessageTimeoutMs: number = FIRST_MESSAGE_TIMEOUT_MS,
  ): Promise<ControlListener> {
    const listener = new ControlListener(events, firstMessageTimeoutMs);
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

  /** The port it listens on: the one asked for, or the one the system chose for 0. */
  get port(): number {
    return this.#tcp.port;
  }

  /** Takes no new connections, and lets go of those that have said nothing yet; others stay. */
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
