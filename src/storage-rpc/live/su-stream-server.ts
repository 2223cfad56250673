/**
 * One TCP port is for both, as of storage servers: a connection exchanges queue pairs, or carries a stream over TCP.
 */

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { ControlChannel } from '../../cm/control-channel.js';
import type { ChannelSecurity } from '../../cm/secure-channel.js';
import { peerAddress } from '../../cm/tcp-address.js';
import { checkOptions, checkText, checkWhole, type OptionNames } from '../../core/arguments.js';
import { ConnectionLimiter } from '../../core/connection-limiter.js';
import { RoceError } from '../../core/errors.js';
import { offerCrc32c } from '../../driver/crc32/crc32c-choice.js';
import { SYSTEM_CLOCK } from '../../driver/system-clock.js';
import type { SecureOptions } from '../../verbs/security.js';
import { StreamAcceptor, type StreamAcceptorOptions } from '../su-stream/stream-acceptor.js';
import { StreamLink } from '../su-stream/stream-link.js';
import { checkStreamTerms, type SuStream } from '../su-stream/su-stream.js';
import { securityOf, sortSocket } from './socket-security.js';
import type { SuEndpoint } from './su-endpoint.js';

/** Where a server of streams listens, and the terms of its streams. */
export interface SuStreamServerOptions extends StreamAcceptorOptions {
  /** Address to listen on. */
  readonly host: string;
  /** TCP port; with 0 the system chooses. */
  readonly port: number;
  /**
   * For RDMA; without it the server uses only TCP. The credentials of its device also protect TCP. The caller closes
   * it.
   */
  readonly endpoint?: SuEndpoint | undefined;
  /** Credentials of a server without an endpoint: TCP is protected by TLS 1.3. */
  readonly secure?: SecureOptions | undefined;
  /** Called with each stream that a client opens. */
  readonly onStream: (stream: SuStream) => void;
}

const OPTIONS: OptionNames<SuStreamServerOptions> = {
  host: true,
  port: true,
  endpoint: true,
  secure: true,
  onStream: true,
  windowBytes: true,
  idleNs: true,
  silenceNs: true,
  keepNs: true,
  streamsMax: true,
};
const CONNECTION_LIMITS = { total: 1024, perAddress: 256 };

/** A server of streams on one TCP port. */
export class SuStreamServer implements AsyncDisposable {
  readonly #endpoint: SuEndpoint | undefined;
  readonly #security: ChannelSecurity | undefined;
  #untrusted = 0;
  readonly #listener: Server;
  readonly #acceptor: StreamAcceptor;
  readonly #limiter = new ConnectionLimiter<Socket>({
    quotas: [{ states: ['pending', 'admitted'], ...CONNECTION_LIMITS }],
    evict: (socket) => socket.destroy(),
  });

  private constructor(
    { host: _h, port: _p, endpoint, secure, onStream, ...terms }: SuStreamServerOptions,
    listener: Server,
  ) {
    this.#endpoint = endpoint;
    this.#security = securityOf(endpoint?.device, secure);
    this.#listener = listener;
    this.#acceptor = new StreamAcceptor(SYSTEM_CLOCK, onStream, terms);
    listener.on('connection', (socket: Socket) => this.#onConnection(socket));
  }

  /**
   * Rejects with ERR_ROCE_IO if the port is in use, ERR_ROCE_UNKNOWN_NAME for an unknown option, ERR_ROCE_OUT_OF_RANGE
   * for an invalid size.
   */
  static async open(options: SuStreamServerOptions): Promise<SuStreamServer> {
    checkOptions('SuStreamServer.open', options, OPTIONS);
    checkText('host', options.host);
    checkWhole('port', options.port, 0, 65_535);
    checkStreamTerms(options);
    offerCrc32c();
    const { host, port } = options;
    const server = new SuStreamServer(options, createServer());
    server.#listener.listen({ host, port });
    try {
      await once(server.#listener, 'listening');
    } catch (error) {
      throw new RoceError('ERR_ROCE_IO', `cannot listen on ${host}:${port}: ${(error as Error).message}`);
    }
    return server;
  }

  /** TCP port it listens on. */
  get port(): number {
    return (this.#listener.address() as { port: number }).port;
  }

  /** Streams that are known now, with a connection or waiting for one. */
  get streams(): number {
    return this.#acceptor.streams;
  }

  /**
   * Connections of peers that did not authenticate as an allowed identity, or came without TLS where it is required.
   */
  get untrusted(): number {
    return this.#untrusted;
  }

  /** Ends all streams and connections. The endpoint stays open. */
  async close(): Promise<void> {
    this.#listener.close();
    await this.#acceptor.close();
    for (const socket of this.#limiter.connections) socket.destroy();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #onConnection(socket: Socket): void {
    let link: StreamLink | undefined;
    const isServed = () => link !== undefined && this.#acceptor.serves(link);
    socket.on('error', () => {});
    if (!this.#limiter.admit(socket, peerAddress(socket), isServed)) return;
    socket.on('close', () => this.#limiter.leave(socket));
    sortSocket(socket, this.#security, {
      onExchange: (control) => {
        void this.#acceptRdma(control).then((made) => {
          link = made;
        });
      },
      onStream: (stream) => {
        link = StreamLink.overTcp(stream);
        this.#acceptor.accept(link);
      },
      onUntrusted: () => this.#untrusted++,
    });
  }

  async #acceptRdma(control: ControlChannel): Promise<StreamLink | undefined> {
    if (this.#endpoint === undefined) {
      control.send({ refused: 'this server has no RDMA' });
      control.close();
      return undefined;
    }
    try {
      const link = StreamLink.overRdma(await this.#endpoint.accept(control, 'su-stream'));
      this.#acceptor.accept(link);
      return link;
    } catch {
      return undefined;
    }
  }
}
