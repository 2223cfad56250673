/**
 * A TCP connection that carries JSON messages, one per line. Two rocev2 endpoints use it to set up RDMA, and to synchronise between the phases
 * of a test. Lines and waits are bounded, and the end of the peer is reported.
 */

import type { Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { connectSocket } from './connect-socket.js';
import { printable } from './printable.js';
import { tcpAddress } from './tcp-address.js';

/** No message of ours comes near it; a peer that sends more is something else. */
const LINE_BYTES_MAX = 65_536;
/** Deepest nesting of a message, so that code may walk through a message by recursion. */
const NESTING_MAX = 16;
/** Most unread messages. Two endpoints take turns, so a peer that sends more is another program. */
const UNREAD_MAX = 64;
/**
 * A host that has died says nothing: after so long without a word its kernel is asked, once a second. Ten questions without an answer (libuv's
 * number) end the connection: 20 s after the death at the latest. The kernel of a process that stands still answers.
 */
const KEEPALIVE_IDLE_MS = 10_000;
/** Time limit for written data to reach the kernel: a peer that is stopped, or whose host is gone, receives nothing. */
const FLUSH_TIMEOUT_MS = 1_000;
/** Set-up messages follow each other at once; waits for the other side's work pass a limit of their own. */
const MESSAGE_TIMEOUT_MS = 10_000;

interface Waiter {
  readonly resolve: (message: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** One end of a control connection. */
export class ControlChannel {
  /** Resolves when the peer is gone, or this end has closed. */
  readonly closed: Promise<void>;
  /** `host:port` of the peer. */
  readonly peer: string;
  /** The peer's TCP address, which cannot be forged; undefined if the connection ended at once. */
  readonly remoteAddress: IpAddress | undefined;
  readonly #socket: Socket;
  #buffered = '';
  readonly #messages: unknown[] = [];
  #waiter: Waiter | undefined;
  #failure: Error | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    const { remoteAddress, remotePort } = socket;
    this.peer = `${remoteAddress ?? '?'}:${remotePort ?? '?'}`;
    this.remoteAddress = tcpAddress(remoteAddress);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_IDLE_MS);
    socket.setEncoding('utf8');
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('data', (text: string) => this.#onText(text));
    socket.on('error', (error) =>
      this.#fail(new RoceError('ERR_ROCE_CONNECT', `control connection: ${error.message}`)),
    );
    socket.on('close', () => this.#fail(new RoceError('ERR_ROCE_CONNECT', 'the peer closed the control connection')));
  }

  /** False once the peer is gone. */
  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  /** Sends one message. {@link ControlChannel.receive} reports a peer that is gone. */
  send(message: object): void {
    if (this.#failure === undefined && this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** The next message. Rejects with ERR_ROCE_CONNECT if the peer ends the connection or is silent for `timeoutMs` (Infinity: no limit). */
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

  /** Puts a received message back, for the next `receive`. */
  unread(message: unknown): void {
    this.#messages.unshift(message);
  }

  /** A barrier: both sides call it, and it resolves when both have. */
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

  /** Tells the peer why there will be no connection, and ends it. `busy`: later there may be one. Nothing more is said to a channel that was closed. */
  refuse(why: string, options: { readonly busy?: boolean } = {}): void {
    this.send({ refused: why, ...options });
    this.close();
  }

  /**
   * Ends the connection once what was sent is with the kernel, which delivers it; nobody waits for the peer to hang up as well. Safe to
   * call twice.
   */
  close(): void {
    const { destroyed, writableFinished } = this.#socket;
    if (destroyed) return;
    this.#socket.destroySoon();
    if (!writableFinished) setTimeout(() => this.#socket.destroy(), FLUSH_TIMEOUT_MS).unref();
  }

  /** Ends the connection at once. */
  abort(): void {
    this.#socket.destroy();
  }

  #onText(text: string): void {
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

/** The JSON of a line; undefined where it is none, or nested deeper than any of ours. */
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

/** Connects to a listening endpoint, from `local` if that is given and an address of this host. Rejects with ERR_ROCE_CONNECT, saying why. */
export async function dial(
  host: string,
  port: number,
  local?: IpAddress,
  signal?: AbortSignal,
): Promise<ControlChannel> {
  return new ControlChannel(await connectSocket(host, port, local, signal));
}
