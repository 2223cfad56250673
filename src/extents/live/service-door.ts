/**
 * Where a manager or a node listens: for RDMA connections, and for the same service over TCP at the next port, for peers whose datagrams do not arrive. Who may connect, and
 * what protects the bytes, is the device's matter in both cases.
 */

import type { Socket } from 'node:net';
import { listen } from '../../cm/listen-connect.js';
import type { Listener } from '../../cm/listener.js';
import { channelSecurity, secureAsServer } from '../../cm/secure-channel.js';
import { TcpListener } from '../../cm/tcp-listener.js';
import { type RpcServer, rpcOverStream, type Service, serveRpc } from '../../rpc/index.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { CONNECTION, tcpPortOf } from './peers.js';

/** Ports that are tried where the system chooses: the next one may be taken. */
const ATTEMPTS = 20;
/** TCP connections at a time. */
const STREAMS_MAX = 1024;

/** Answers by the names of methods. */
type Handlers = Record<string, (request: unknown) => Promise<object>>;

/** Where a service listens. */
export interface DoorPlace {
  /** TCP address of both. */
  readonly host: string;
  /** TCP port of the RDMA exchange; 0: the system chooses. */
  readonly port: number;
}

/** Both listeners of one service; made by `open`. */
export class ServiceDoor implements AsyncDisposable {
  readonly #device: RdmaDevice;
  readonly #streams = new Map<Socket, RpcServer | undefined>();
  #listener!: Listener;
  #tcp!: TcpListener;
  #served: { readonly service: Service; readonly handlers: Handlers } | undefined;
  #rdma: RpcServer | undefined;

  private constructor(device: RdmaDevice) {
    this.#device = device;
  }

  /** Rejects as `listen` does, also if the next port is taken. */
  static async open(device: RdmaDevice, place: DoorPlace): Promise<ServiceDoor> {
    const door = new ServiceDoor(device);
    for (let attempt = 1; ; attempt++) {
      door.#listener = await listen(device, { ...CONNECTION, ...place });
      const tcp = { host: place.host, port: tcpPortOf(door.port) };
      try {
        door.#tcp = await TcpListener.open(tcp, { onSocket: (socket) => void door.#welcome(socket) });
        return door;
      } catch (error) {
        await door.#listener.close();
        if (place.port !== 0 || attempt === ATTEMPTS) throw error;
      }
    }
  }

  /** TCP port of the RDMA exchange. */
  get port(): number {
    return this.#listener.port;
  }

  /** Begins to answer. */
  serve(service: Service, handlers: Handlers): void {
    this.#served = { service, handlers };
    this.#rdma = serveRpc(this.#listener, service, handlers);
  }

  async #welcome(socket: Socket): Promise<void> {
    socket.on('error', () => {}); // `close` follows.
    if (this.#streams.size >= STREAMS_MAX || this.#served === undefined) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    this.#streams.set(socket, undefined);
    socket.once('close', () => {
      const server = this.#streams.get(socket);
      this.#streams.delete(socket);
      void server?.close();
    });
    const { service, handlers } = this.#served;
    try {
      const security = channelSecurity(this.#device);
      const stream = security === undefined ? socket : (await secureAsServer(socket, security)).socket;
      if (this.#streams.has(socket)) this.#streams.set(socket, serveRpc(rpcOverStream(stream), service, handlers));
    } catch {
      socket.destroy(); // It did not prove that it is let in.
    }
  }

  /** Ends both, and all connections. */
  async close(): Promise<void> {
    this.#tcp.close();
    for (const [socket, server] of this.#streams) {
      void server?.close();
      socket.destroy();
    }
    await this.#rdma?.close();
    await this.#listener.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
