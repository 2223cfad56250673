/**
 * A TCP connection that carries JSON messages, one per line, used to set up RDMA and to synchronise test phases. Lines
 * and waits are bounded.
 */

import type { Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { connectSocket } from './connect-socket.js';
import type { Hello } from './hello.js';
import { printable } from './printable.js';
import {
  type ChannelKeys,
  type ChannelSecurity,
  PlainPeerError,
  SECURE_ONLY,
  type SecuredSocket,
  secureAsClient,
  TLS_HANDSHAKE,
} from './secure-channel.js';
import { tcpAddress } from './tcp-address.js';

const LINE_BYTES_MAX = 65_536;
/** Deepest nesting of a message, so that recursion over a message is bounded. */
const NESTING_MAX = 16;
/** Two endpoints take turns, so a peer that sends more is another program. */
const UNREAD_MAX = 64;
/**
 * A dead host sends nothing: after this long without data its kernel is probed once a second; ten unanswered probes
 * (libuv's number) end the connection, 20 s after the death at the latest. The kernel of a stopped process still
 * answers.
 */
const KEEPALIVE_IDLE_MS = 10_000;
/** Time limit for written data to reach the kernel: a peer that is stopped, or whose host is gone, receives nothing. */
const FLUSH_TIMEOUT_MS = 1_000;
/** Set-up messages follow each other at once; a wait for the peer's work has a separate limit. */
const MESSAGE_TIMEOUT_MS = 10_000;

interface Waiter {
  readonly resolve: (message: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class ControlChannel {
  readonly closed: Promise<void>;
  readonly peer: string;
  /** The peer's TCP address, which cannot be forged; undefined if the connection ended at once. */
  readonly remoteAddress: IpAddress | undefined;
  #socket: Socket;
  #isSecuring: boolean;
  #keys: ChannelKeys | undefined;
  association:
    | { readonly spi: number; agreed: { readonly remoteSpi: number; readonly cipher: Hello['cipher'] } | undefined }
    | undefined;
  #buffered = '';
  readonly #messages: unknown[] = [];
  #waiter: Waiter | undefined;
  #failure: Error | undefined;

  constructor(socket: Socket, secure?: (socket: Socket) => Promise<SecuredSocket>) {
    this.#socket = socket;
    this.#isSecuring = secure !== undefined;
    const { remoteAddress, remotePort } = socket;
    this.peer = `${remoteAddress ?? '?'}:${remotePort ?? '?'}`;
    this.remoteAddress = tcpAddress(remoteAddress);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_IDLE_MS);
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    this.#watchEnd(socket);
    if (secure === undefined) this.#listen(socket);
    else void this.#secure(secure(socket));
  }

  async #secure(securing: Promise<SecuredSocket>): Promise<void> {
    try {
      const { socket, keys } = await securing;
      this.#isSecuring = false;
      this.#keys = keys;
      if (socket !== this.#socket) this.#watchEnd(socket);
      this.#socket = socket;
      this.#listen(socket);
      socket.resume();
    } catch (error) {
      this.#isSecuring = false;
      this.#fail(error as Error);
      if (error instanceof PlainPeerError) this.#tell({ refused: SECURE_ONLY });
      this.close();
    }
  }

  #listen(socket: Socket): void {
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => this.#onText(text));
  }

  #watchEnd(socket: Socket): void {
    socket.on('error', (error) => {
      if (!this.#isSecuring) this.#fail(new RoceError('ERR_ROCE_CONNECT', `control connection: ${error.message}`));
    });
    socket.on('close', () => {
      if (!this.#isSecuring) this.#fail(new RoceError('ERR_ROCE_CONNECT', 'the peer closed the control connection'));
    });
  }

  get keys(): ChannelKeys | undefined {
    return this.#keys;
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  send(message: object): void {
    if (this.#failure === undefined) this.#tell(message);
  }

  #tell(message: object): void {
    if (!this.#isSecuring && this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /**
   * Rejects with ERR_ROCE_CONNECT if the peer ends the connection or is silent for `timeoutMs` (Infinity: no limit).
   */
  receive(timeoutMs = MESSAGE_TIMEOUT_MS): Promise<unknown> {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift());
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const timer =
        timeoutMs === Number.POSITIVE_INFINITY
          ? undefined
          : setTimeout(() => {
              this.#waiter = undefined;
              reject(new RoceError('ERR_ROCE_CONNECT', `${this.peer} was silent for ${timeoutMs} ms`));
            }, timeoutMs);
      this.#waiter = {
        resolve: (message) => {
          clearTimeout(timer);
          resolve(message);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
    });
  }

  unread(message: unknown): void {
    this.#messages.unshift(message);
  }

  async barrier(name: string, timeoutMs = MESSAGE_TIMEOUT_MS): Promise<void> {
    this.send({ barrier: name });
    const message = (await this.receive(timeoutMs)) as { barrier?: unknown } | null;
    if (message?.barrier !== name) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        `waiting for '${name}', the peer sent ${printable(JSON.stringify(message))}`,
      );
    }
  }

  refuse(why: string, options: { readonly busy?: boolean } = {}): void {
    this.send({ refused: why, ...options });
    this.close();
  }

  /** Ends the connection once the kernel has the sent data, which it delivers; does not wait for the peer to close. */
  close(): void {
    const { destroyed, writableFinished } = this.#socket;
    if (destroyed) return;
    this.#socket.destroySoon();
    if (!writableFinished) setTimeout(() => this.#socket.destroy(), FLUSH_TIMEOUT_MS).unref();
  }

  abort(): void {
    this.#socket.destroy();
  }

  #onText(text: string): void {
    if (this.#buffered === '' && text.charCodeAt(0) === TLS_HANDSHAKE) {
      this.#tell({ refused: 'this device has no secure mode' }); // So that a TLS client sees at once what is wrong.
      this.#fail(
        new RoceError('ERR_ROCE_MISMATCH', 'the peer asks for secure mode', 'also open this device with secure'),
      );
      this.close();
      return;
    }
    this.#buffered += text;
    for (let end = this.#buffered.indexOf('\n'); end >= 0; end = this.#buffered.indexOf('\n')) {
      const line = this.#buffered.slice(0, end);
      this.#buffered = this.#buffered.slice(end + 1);
      const message = parseMessage(line);
      if (message === undefined) this.#refuse('the peer does not speak the rocev2 exchange');
      else this.#deliver(message);
      if (this.#failure !== undefined) return;
    }
    if (this.#buffered.length > LINE_BYTES_MAX) this.#refuse('the peer sent a line without end');
  }

  #deliver(message: unknown): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) waiter.resolve(message);
    else if (this.#messages.length < UNREAD_MAX) this.#messages.push(message);
    else this.#refuse('the peer sent too many messages');
  }

  #refuse(why: string): void {
    this.#fail(new RoceError('ERR_ROCE_MISMATCH', why, 'is there another program on this port?'));
    this.abort();
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#waiter?.reject(error);
    this.#waiter = undefined;
  }
}

function parseMessage(line: string): unknown {
  try {
    const message: unknown = JSON.parse(line);
    return isNestedWithin(message, NESTING_MAX) ? message : undefined;
  } catch {
    return undefined;
  }
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isNestedWithin(inner, levels - 1));
}

export async function dial(
  host: string,
  port: number,
  local?: IpAddress,
  signal?: AbortSignal,
  security?: ChannelSecurity,
): Promise<ControlChannel> {
  const socket = await connectSocket(host, port, local, signal);
  if (security === undefined) return new ControlChannel(socket);
  try {
    const secured = await secureAsClient(socket, host, security);
    return new ControlChannel(socket, async () => secured);
  } catch (error) {
    if (security.mode === 'prefer' && error instanceof PlainPeerError) return dial(host, port, local, signal);
    throw error;
  }
}
