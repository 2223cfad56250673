/**
 * The TCP side of a service. Anybody can open connections, so those that have not said a whole first frame are bounded and the oldest makes room ({@link SilentPeers}); the others are
 * bounded in total and per address, by the numbers of `listen()`, and who has never called anything makes room there.
 */

import type { Socket } from 'node:net';
import { HEADER_BYTES, type RpcServer, rpcOverStream, type Service, serveRpc } from '@rocev2/rpc';
import {
  channelSecurity,
  type PlaceLimits,
  Places,
  SilentPeers,
  secureAsServer,
  TcpListener,
  tcpAddress,
} from 'rocev2/internal/cm';
import { NS_PER_MS } from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';

/** Connections that have said who they are. */
const LIMITS: PlaceLimits = { total: 1024, perAddress: 128 };
/** From the connection to the end of its first frame, the handshake of TLS included. */
const FIRST_FRAME_MS = 10_000;
/** A host that has died says nothing: its kernel is asked after so long. */
const KEEPALIVE_IDLE_MS = 10_000;

type IpAddress = RdmaDevice['address'];

/** Answers by the names of methods. */
export type Handlers = Record<string, (request: unknown) => Promise<object>>;

/** A connection that has not said anything yet. */
interface Visitor {
  readonly socket: Socket;
  readonly remoteAddress: IpAddress | undefined;
}

/** One that is served. */
interface Guest {
  readonly socket: Socket;
  readonly server: RpcServer;
}

/** Listens for byte streams of one service. */
export class StreamDoor {
  readonly #device: RdmaDevice;
  readonly #silent = new SilentPeers<Visitor>(({ socket }) => socket.destroy());
  readonly #guests: Places<Guest>;
  #tcp!: TcpListener;
  #served: { readonly service: Service; readonly handlers: Handlers } | undefined;

  private constructor(device: RdmaDevice, limits: PlaceLimits) {
    this.#device = device;
    this.#guests = new Places(limits);
  }

  /** Rejects with ERR_ROCE_IO if the port is taken. */
  static async open(
    device: RdmaDevice,
    place: { readonly host: string; readonly port: number },
    limits: PlaceLimits = LIMITS,
  ): Promise<StreamDoor> {
    const door = new StreamDoor(device, limits);
    door.#tcp = await TcpListener.open(place, {
      onSocket: (socket) => void door.#hear(socket),
      makeRoom: () => door.#silent.makeRoom(),
    });
    return door;
  }

  /** Begins to answer. */
  serve(service: Service, handlers: Handlers): void {
    this.#served = { service, handlers };
  }

  async #hear(socket: Socket): Promise<void> {
    socket.on('error', () => {}); // `close` follows.
    const remoteAddress = tcpAddress(socket.remoteAddress);
    if (this.#served === undefined || remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_IDLE_MS);
    let stream = socket;
    const listen = async () => {
      const { clock } = this.#device;
      const stopTimer = clock.wakeAt(clock.nowNs() + FIRST_FRAME_MS * NS_PER_MS, () => socket.destroy());
      try {
        const security = channelSecurity(this.#device);
        if (security !== undefined) stream = (await secureAsServer(socket, security)).socket;
        await firstFrame(stream);
      } finally {
        stopTimer();
      }
    };
    const welcome = () => this.#welcome(socket, stream, remoteAddress);
    await this.#silent.hear({ socket, remoteAddress }, listen, welcome, () => socket.destroy());
  }

  #welcome(socket: Socket, stream: Socket, address: IpAddress): void {
    if (socket.destroyed) return;
    if (this.#guests.fullFor(address) !== undefined) {
      const idle = this.#guests.inTheWayOf(address, ({ server }) => server.counters().calls === 0);
      if (idle === undefined) {
        socket.destroy();
        return;
      }
      this.#guests.leave(idle);
      idle.socket.destroy();
    }
    const { service, handlers } = this.#served!;
    const guest = { socket, server: serveRpc(rpcOverStream(stream), service, handlers) };
    this.#guests.enter(guest, address);
    socket.once('close', () => {
      this.#guests.leave(guest);
      void guest.server.close();
    });
  }

  /** Takes no new connections, and ends all. */
  async close(): Promise<void> {
    this.#tcp.close();
    for (const { socket } of this.#silent.takeAll()) socket.destroy();
    for (const { socket, server } of [...this.#guests.members]) {
      void server.close();
      socket.destroy();
    }
  }
}

/** Resolves when a whole frame header is here, and leaves it in the stream. Rejects if the peer leaves before. */
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
