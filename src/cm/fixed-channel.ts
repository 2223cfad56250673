/**
 * A TCP connection that carries messages of known size, as the C programs exchange them: each side knows what comes next, writes a
 * message in one piece because the other reads it in one, and waits only so long.
 */

import type { Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';
import { connectSocket } from './connect-socket.js';
import { TcpListener } from './tcp-listener.js';

/** perftest sleeps a second before it speaks, and an emulated peer thinks slowly. */
const MESSAGE_TIMEOUT_MS = 20_000;
/** More than any message; a peer that sends so much unasked is something else. */
const UNREAD_BYTES_MAX = 65_536;
/** Connections that nobody has asked for yet; more are cut. Such programs serve one peer at a time. */
const WAITING_MAX = 16;
/** A peer has so long to take what was written and to hang up as well; one whose host is gone never does. */
const GOODBYE_MS = 2_000;

/** One end of such a connection. */
export class FixedChannel {
  /** `host:port` of the other end. */
  readonly peer: string;
  readonly #localAddress: string | undefined;
  readonly #socket: Socket;
  #unread = Buffer.alloc(0);
  #failure: RoceError | undefined;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    // Kept: a socket forgets them when its peer is gone.
    this.peer = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? '?'}`;
    this.#localAddress = socket.localAddress;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('end', () => this.#fail('the peer closed the connection'));
    socket.on('error', (error) => this.#fail(error.message));
  }

  /** This end's address: the one the peer can reach. Throws ERR_ROCE_CONNECT for a peer that was gone at once. */
  get localAddress(): IpAddress {
    if (this.#localAddress === undefined) {
      throw new RoceError('ERR_ROCE_CONNECT', 'the peer closed the connection as soon as it was made');
    }
    return IpAddress.parse(this.#localAddress.replace(/%.*/, ''));
  }

  /** False once the peer has closed the connection, or it broke. */
  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  /** Sends a message in one segment. */
  write(message: Uint8Array): void {
    if (this.#failure === undefined) this.#socket.write(message);
  }

  /** The next `bytes` bytes. Rejects with ERR_ROCE_CONNECT when they do not come in time; `what` says in the error what was expected. */
  async read(bytes: number, what: string, timeoutMs = MESSAGE_TIMEOUT_MS): Promise<Buffer> {
    const timer = setTimeout(() => this.#fail(`nothing for ${timeoutMs / 1000} s`), timeoutMs);
    try {
      while (this.#unread.length < bytes) {
        if (this.#failure !== undefined) {
          const { message } = this.#failure;
          throw new RoceError('ERR_ROCE_CONNECT', `waiting for ${what} from ${this.peer}: ${message}`);
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
    const message = this.#unread.subarray(0, bytes);
    this.#unread = this.#unread.subarray(bytes);
    return message;
  }

  #onData(bytes: Buffer): void {
    if (this.#unread.length + bytes.length > UNREAD_BYTES_MAX) {
      this.#fail('it sends more than the exchange has');
      this.#socket.destroy();
      return;
    }
    this.#unread = Buffer.concat([this.#unread, bytes]);
    this.#wake();
  }

  #fail(why: string): void {
    this.#failure ??= new RoceError('ERR_ROCE_CONNECT', why);
    this.#wake();
  }

  /** Says that nothing more will be sent, and lets go: a peer that does not hang up keeps no program alive. */
  close(): void {
    this.#socket.end();
    this.#socket.unref();
    setTimeout(() => this.#socket.destroy(), GOODBYE_MS).unref();
  }

  /** Cuts the connection: whoever reads from it fails. */
  abort(): void {
    this.#fail('interrupted');
    this.#socket.destroy();
  }
}

/** Connects. Rejects with ERR_ROCE_CONNECT, saying why. */
export async function dialFixed(host: string, port: number): Promise<FixedChannel> {
  return new FixedChannel(await connectSocket(host, port));
}

/** Listens on a TCP port for one peer after another. */
export class FixedListener {
  readonly #waiting: FixedChannel[] = [];
  #accepter: ((channel: FixedChannel) => void) | undefined;
  #tcp!: TcpListener;

  private constructor() {}

  /** On all addresses of the host unless one is given; port 0 lets the system choose. Rejects with ERR_ROCE_IO when the port is taken. */
  static async open(port: number, host?: string): Promise<FixedListener> {
    const listener = new FixedListener();
    listener.#tcp = await TcpListener.open({ host, port }, { onSocket: (socket) => listener.#onSocket(socket) });
    return listener;
  }

  /** The one asked for, or the one the system chose for 0. */
  get port(): number {
    return this.#tcp.port;
  }

  /** The next peer that has not left. Rejects with an AbortError when the signal is aborted. */
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
    const accepter = this.#accepter;
    this.#accepter = undefined;
    if (accepter !== undefined) accepter(channel);
    else if (this.#waiting.length < WAITING_MAX) this.#waiting.push(channel);
    else channel.abort();
  }

  /** Takes no new connections, and cuts those that nobody has asked for; others stay. */
  close(): void {
    this.#tcp.close();
    for (const channel of this.#waiting.splice(0)) channel.abort();
  }
}
