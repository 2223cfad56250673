/**
 * The TCP side of a service. Anybody can open connections: those without a whole first frame are pending, and bounded
 * as in all listeners; the others are bounded by the numbers of `listen()`, and one that has never called anything is
 * evicted first.
 */

import type { Socket } from 'node:net';
import { type RpcServer, rpcOverStream, type Service, serveRpc } from '@rocev2/rpc';
import { HEADER_BYTES } from '@rocev2/rpc/internal';
import { channelSecurity, peerAddress, secureAsServer, TcpListener, UntrustedPeerError } from 'rocev2/internal/cm';
import {
  ConnectionLimiter,
  type ConnectionLimits,
  type Origin,
  PENDING_LIMITS,
  type RefusedPeers,
} from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { REQUEST_LIMITS } from './services.js';

const LIMITS: ConnectionLimits = { total: 1024, perAddress: 128 };
const FIRST_FRAME_MS = 10_000;
const KEEPALIVE_IDLE_MS = 10_000;

export type RequestHandlers = Record<string, (request: unknown) => Promise<object>>;

interface StreamPeer {
  readonly socket: Socket;
  /** Once its first frame is here. */
  server: RpcServer | undefined;
}

export class StreamListener {
  readonly #device: RdmaDevice;
  readonly #limiter: ConnectionLimiter<StreamPeer>;
  readonly #refused: RefusedPeers;
  #tcp!: TcpListener;
  #served: { readonly service: Service; readonly handlers: RequestHandlers } | undefined;

  private constructor(device: RdmaDevice, refused: RefusedPeers, limits: ConnectionLimits) {
    this.#device = device;
    this.#refused = refused;
    this.#limiter = new ConnectionLimiter<StreamPeer>({
      quotas: [
        { states: ['pending'], ...PENDING_LIMITS },
        { states: ['admitted'], ...limits },
      ],
      evict: ({ socket }) => socket.destroy(),
      handshakeDeadline: { clock: device.clock, ms: FIRST_FRAME_MS },
    });
  }

  static async open(
    device: RdmaDevice,
    place: { readonly host: string; readonly port: number },
    refused: RefusedPeers,
    limits: ConnectionLimits = LIMITS,
  ): Promise<StreamListener> {
    const listener = new StreamListener(device, refused, limits);
    listener.#tcp = await TcpListener.open(place, {
      onSocket: (socket) => void listener.#hear(socket),
      makeRoom: () => listener.#limiter.evictOldest('pending'),
    });
    return listener;
  }

  /** Begins to answer. */
  serve(service: Service, handlers: RequestHandlers): void {
    this.#served = { service, handlers };
  }

  async #hear(socket: Socket): Promise<void> {
    socket.on('error', () => {}); // `close` follows.
    if (this.#served === undefined || socket.remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const address = peerAddress(socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_IDLE_MS);
    let stream = socket;
    const peer: StreamPeer = { socket, server: undefined };
    const receiveFirst = async () => {
      const security = channelSecurity(this.#device);
      if (security !== undefined) stream = (await secureAsServer(socket, security)).socket;
      await firstFrame(stream);
    };
    const isHere = await this.#limiter.handshake(peer, address, receiveFirst, (error) => {
      socket.destroy();
      // Others left, or were silent: that is no refusal.
      if (error instanceof UntrustedPeerError) this.#refused.add(String(address), error.message);
    });
    if (isHere) this.#admit(peer, stream, address);
  }

  #admit(peer: StreamPeer, stream: Socket, address: Origin): void {
    const { socket } = peer;
    if (socket.destroyed) return;
    if (!this.#limiter.makeRoom('admitted', address, isIdle)) {
      socket.destroy();
      this.#refused.add(String(address), 'no more connections are possible');
      return;
    }
    const { service, handlers } = this.#served!;
    const server = serveRpc(rpcOverStream(stream), service, handlers, REQUEST_LIMITS);
    peer.server = server;
    this.#limiter.enter(peer, 'admitted', address);
    socket.once('close', () => {
      this.#limiter.leave(peer);
      void server.close();
    });
  }

  async close(): Promise<void> {
    this.#tcp.close();
    for (const peer of this.#limiter.connections) {
      void peer.server?.close();
      this.#limiter.evict(peer);
    }
  }
}

/** It has never called anything. */
function isIdle({ server }: StreamPeer): boolean {
  return server!.counters().calls === 0;
}

function firstFrame(stream: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (stream.readableLength >= HEADER_BYTES) done(resolve);
    };
    const left = () => done(() => reject(new Error('the peer left before it said anything')));
    const done = (settle: () => void) => {
      stream.off('readable', look);
      stream.off('end', left);
      stream.off('close', left);
      settle();
    };
    stream.on('readable', look);
    stream.on('end', left);
    stream.on('close', left);
    if (stream.destroyed || stream.readableEnded) left();
    else look();
  });
}
