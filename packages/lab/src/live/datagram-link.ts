/**
 * A link of UDP datagrams, one Ethernet frame each, as QEMU's `-netdev dgram` and GNS3 speak it. It listens to one
 * peer: the one that is named or, without a name, the first on this host that speaks to it.
 */

import type { RemoteInfo, Socket } from 'node:dgram';
import {
  bindSocket,
  closeSocket,
  DEFAULT_SOCKET_BUFFER_BYTES,
  formatUdpEndpoint,
  type UdpEndpoint,
} from 'rocev2/internal/dgram-ext';
import type { FrameHandler, FrameLink } from './frame-link.js';

export class DatagramLink implements FrameLink {
  readonly local: UdpEndpoint;
  unknownPeers = 0;
  errors = 0;
  onFrame: FrameHandler = () => {};
  onFrames: () => void = () => {};
  readonly #socket: Socket;
  #remoteHost: string | undefined;
  #remotePort: number;

  private constructor(socket: Socket, local: UdpEndpoint, remote: UdpEndpoint | undefined) {
    this.local = local;
    this.#socket = socket;
    this.#remoteHost = remote?.host.text;
    this.#remotePort = remote?.port ?? 0;
    socket.on('error', () => this.errors++);
    socket.on('message', (bytes, from) => {
      if (!this.#isPeer(from)) {
        this.unknownPeers++;
        return;
      }
      this.onFrame(bytes, 0, bytes.length);
      this.onFrames();
    });
  }

  static async open(local: UdpEndpoint, remote?: UdpEndpoint): Promise<DatagramLink> {
    const bound = await bindSocket({
      address: local.host,
      udpPort: local.port,
      receiveBufferBytes: DEFAULT_SOCKET_BUFFER_BYTES,
      sendBufferBytes: DEFAULT_SOCKET_BUFFER_BYTES,
      native: true,
    });
    return new DatagramLink(bound.socket, { host: local.host, port: bound.udpPort }, remote);
  }

  get description(): string {
    return formatUdpEndpoint(this.local);
  }

  send(frame: Uint8Array): void {
    if (this.#remoteHost === undefined) this.errors++;
    else this.#socket.send(frame, this.#remotePort, this.#remoteHost, this.#onSent);
  }

  flush(): boolean {
    return this.#socket.getSendQueueCount() === 0;
  }

  close(): Promise<void> {
    this.onFrame = () => {};
    this.onFrames = () => {};
    return closeSocket(this.#socket);
  }

  readonly #onSent = (error: Error | null): void => {
    if (error !== null) this.errors++;
  };

  #isPeer(from: RemoteInfo): boolean {
    if (this.#remoteHost === undefined && (from.address === '::1' || from.address.startsWith('127.'))) {
      this.#remoteHost = from.address;
      this.#remotePort = from.port;
    }
    return from.address === this.#remoteHost && from.port === this.#remotePort;
  }
}
