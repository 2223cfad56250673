/**
 * A TCP connection that carries messages of known size, as the C programs exchange them: each side knows what comes next, writes a
 * message in one piece because the other reads it in one, and waits only so long.
 */

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';
import { connectSocket } from './connect-socket.js';

/** perftest sleeps a second before it speaks, and an emulated peer thinks slowly. */
const MESSAGE_TIMEOUT_MS = 20_000;
/** More than any message; a peer that sends so much unasked is something else. */
const UNREAD_BYTES_MAX = 65_536;

/** One end of such a connection. */
export class FixedChannel {
  readonly #socket: Socket;
  #unread = Buffer.alloc(0);
  #failure: RoceError | undefined;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('end', () => this.#fail('the peer closed the connection'));
    socket.on('error', (error) => this.#fail(error.message));
  }

  /** `host:port` of the other end. */
  get peer(): string {
    return `${this.#socket.remoteAddress}:${this.#socket.remotePort}`;
  }

  /** This end's address: the one the peer can reach. */
  get localAddress(): IpAddress {
    return IpAddress.parse(this.#socket.localAddress!.replace(/%.*/, ''));
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
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** On all addresses of the host unless one is given; port 0 lets the system choose. Rejects with ERR_ROCE_IO when the port is taken. */
  static async open(port: number, host?: string): Promise<FixedListener> {
    const server = createServer({ pauseOnConnect: false });
    server.listen({ port, ...(host !== undefined && { host }) });
    try {
      await once(server, 'listening');
    } catch (error) {
      const hint = (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'choose another port' : undefined;
      throw new RoceError('ERR_ROCE_IO', `cannot listen on TCP port ${port}: ${(error as Error).message}`, hint);
    }
    return new FixedListener(server);
  }

  /** The one asked for, or the one the system chose for 0. */
  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  /** The next peer. Rejects when the signal is aborted. */
  async accept(signal?: AbortSignal): Promise<FixedChannel> {
    const [socket] = (await once(this.#server, 'connection', signal === undefined ? {} : { signal })) as [Socket];
    return new FixedChannel(socket);
  }

  /** Takes no new connections; open ones stay. */
  close(): void {
    this.#server.close();
  }
}
