/**
 * A TCP connection that carries JSON messages, one a line: how two of our endpoints agree before RDMA works, and meet between the phases
 * of a test. Lines are bounded, waits have a limit, and a peer that goes away is said so.
 */

import { createServer, type Server, type Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import { connectSocket } from './connect-socket.js';

/** No message of ours comes near it; a peer that sends more is something else. */
const LINE_BYTES_MAX = 65_536;
/** Our messages are flat. What walks through a message may do so by recursion: nobody can make it deeper than this. */
const NESTING_MAX = 16;
/** Messages that wait to be asked for. Two endpoints take turns; a peer that sends more is something else, too. */
const UNREAD_MAX = 64;
/**
 * A host that has died says nothing: after so long without a word its kernel is asked, once a second. Ten questions without an answer (libuv's
 * number) end the connection: 20 s after the death at the latest. The kernel of a process that stands still answers.
 */
const KEEPALIVE_IDLE_MS = 10_000;
/** Set-up messages follow each other at once; waits for the other side's work pass a limit of their own. */
const MESSAGE_TIMEOUT_MS = 10_000;

interface Waiter {
  readonly resolve: (message: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** One end of a control connection. */
export class ControlChannel {
  /** Resolves when the other end is gone, or this one has closed. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  #buffered = '';
  readonly #messages: unknown[] = [];
  #waiter: Waiter | undefined;
  #failure: Error | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
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

  /** `host:port` of the other end. */
  get peer(): string {
    return `${this.#socket.remoteAddress ?? '?'}:${this.#socket.remotePort ?? '?'}`;
  }

  /** False once the other end is gone. */
  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  /** Sends one message; a peer that is gone is noticed by {@link ControlChannel.receive}. */
  send(message: object): void {
    if (this.#failure === undefined) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** The next message. Rejects with ERR_ROCE_CONNECT when the peer goes away or says nothing for `timeoutMs` (Infinity: waits). */
  receive(timeoutMs = MESSAGE_TIMEOUT_MS): Promise<unknown> {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift());
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const timer =
        timeoutMs === Number.POSITIVE_INFINITY
          ? undefined
          : setTimeout(() => {
              this.#waiter = undefined;
              reject(new RoceError('ERR_ROCE_CONNECT', `${this.peer} said nothing for ${timeoutMs} ms`));
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

  /** Gives back a message that was received, for the next `receive`. */
  unread(message: unknown): void {
    this.#messages.unshift(message);
  }

  /** Both sides call it; both return when both have. */
  async barrier(name: string, timeoutMs = MESSAGE_TIMEOUT_MS): Promise<void> {
    this.send({ barrier: name });
    const message = (await this.receive(timeoutMs)) as { barrier?: unknown } | null;
    if (message?.barrier !== name) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        `waiting for '${name}', the peer sent ${JSON.stringify(message).slice(0, 200)}`,
      );
    }
  }

  /** Ends the connection. Safe to call twice. */
  close(): void {
    this.#socket.end();
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
    else this.#refuse('the peer sends more than it is asked for');
  }

  #refuse(why: string): void {
    this.#fail(new RoceError('ERR_ROCE_MISMATCH', why, 'is there another program on this port?'));
    this.#socket.destroy();
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

/** Connects to a listening endpoint. Rejects with ERR_ROCE_CONNECT, saying why. */
export async function dial(host: string, port: number): Promise<ControlChannel> {
  return new ControlChannel(await connectSocket(host, port));
}

/** Accepts control connections until closed. */
export class ControlListener {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Rejects with ERR_ROCE_IO when the port is taken. */
  static open(host: string, port: number, onChannel: (channel: ControlChannel) => void): Promise<ControlListener> {
    return new Promise((resolve, reject) => {
      const server = createServer((socket) => onChannel(new ControlChannel(socket)));
      server.once('error', (error: NodeJS.ErrnoException) => {
        const hint = error.code === 'EADDRINUSE' ? 'another program listens there: choose another port' : undefined;
        reject(new RoceError('ERR_ROCE_IO', `cannot listen on ${host}:${port}: ${error.message}`, hint));
      });
      server.listen({ host, port }, () => resolve(new ControlListener(server)));
    });
  }

  /** The port it listens on: the one asked for, or the one the system chose for 0. */
  get port(): number {
    const address = this.#server.address();
    return address !== null && typeof address === 'object' ? address.port : 0;
  }

  /** Takes no new connections; open ones stay. */
  close(): void {
    this.#server.close();
  }
}
