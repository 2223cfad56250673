/**
 * A TCP connection with messages of known size, for the exchanges of C programs. A message is written in one piece,
 * because the other side reads it in one.
 */

import type { Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { connectSocket } from './connect-socket.js';
import { tcpAddress } from './tcp-address.js';

/** perftest sleeps for a second before it sends, and an emulated peer is slow. */
const MESSAGE_TIMEOUT_MS = 20_000;
const UNREAD_BYTES_MAX = 65_536;
/** Time for the peer to receive the data and to close. A peer whose host is gone never does. */
const GOODBYE_MS = 2_000;

export class FixedChannel {
  readonly peer: string;
  readonly remoteAddress: IpAddress | undefined;
  readonly #localAddress: string | undefined;
  readonly #socket: Socket;
  #unread = Buffer.alloc(0);
  #failure: RoceError | undefined;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    // Cached: a socket forgets its peer's address once the peer is gone.
    this.peer = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? '?'}`;
    this.remoteAddress = tcpAddress(socket.remoteAddress);
    this.#localAddress = socket.localAddress;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('end', () => this.#fail('the peer closed the connection'));
    socket.on('error', (error) => this.#fail(error.message));
  }

  get localAddress(): IpAddress {
    if (this.#localAddress === undefined) {
      throw new RoceError('ERR_ROCE_CONNECT', 'the peer closed the connection at once');
    }
    return tcpAddress(this.#localAddress)!;
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  write(message: Uint8Array): void {
    if (this.#failure === undefined) this.#socket.write(message);
  }

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

  unread(message: Buffer): void {
    this.#unread = Buffer.concat([message, this.#unread]);
  }

  #onData(bytes: Buffer): void {
    if (this.#unread.length + bytes.length > UNREAD_BYTES_MAX) {
      this.#fail('it sent more than the exchange has');
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

  /** Half-closes and unrefs the socket, so that a peer that does not close cannot keep the program running. */
  close(): void {
    this.#socket.end();
    this.#socket.unref();
    setTimeout(() => this.#socket.destroy(), GOODBYE_MS).unref();
  }

  abort(): void {
    this.#fail('interrupted');
    this.#socket.destroy();
  }
}

export async function dialFixed(host: string, port: number): Promise<FixedChannel> {
  return new FixedChannel(await connectSocket(host, port));
}
