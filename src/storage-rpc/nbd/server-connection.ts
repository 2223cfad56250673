/**
 * A client's socket with its requests on the way to the disk. What a client may hold is bounded: while it has too much under way, or does
 * not fetch its replies, nothing more is read from its socket.
 */

import type { Socket } from 'node:net';
import type { BufferCache } from './buffer-cache.js';
import { execute, type ServedExport } from './execute.js';
import type { NbdRequest } from './protocol/request.js';
import { ServerSession } from './protocol/server-session.js';
import { CMD_READ } from './protocol/wire.js';
import type { Slots } from './slots.js';

/** Requests of one client that are executed or whose replies it has not fetched. */
const REQUESTS_MAX = 256;
/** Their bytes; one more request, of 32 MiB at most, may be taken when this is not reached. */
const BYTES_MAX = 32 << 20;
/** For the whole handshake. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** For the last replies; as long as a disk may take. */
const FINISH_TIMEOUT_MS = 30_000;

/** What all connections of a server have counted. */
export interface NbdCounters {
  /** Clients that connected. */
  connections: number;
  /** Sessions ended because the client broke the protocol or asked for an unknown export. */
  refusedConnections: number;
  /** Connections closed for lack of room: new ones, or silent ones that made room. */
  turnedAway: number;
  /** Requests received, including failed ones. */
  requests: number;
  /** Bytes requested by READs. */
  bytesRead: number;
  /** Bytes received with WRITEs. */
  bytesWritten: number;
}

/** Serves one client until it goes, breaks the protocol, or the server closes. */
export class NbdServerConnection {
  readonly #socket: Socket;
  readonly #session: ServerSession<ServedExport>;
  readonly #slots: Slots;
  readonly #buffers: BufferCache;
  readonly #allocate = (bytes: number): Uint8Array => this.#buffers.take(bytes);
  readonly #counters: NbdCounters;
  readonly #pumpAgain = (): void => this.#pump();
  /** Destroys the socket of a client that does not get on. */
  #timer: NodeJS.Timeout;
  #requests = 0;
  #bytes = 0;
  /** No more requests are taken; when the last is answered the socket ends. */
  #finishing = false;
  #closed = false;
  #corked = false;

  constructor(
    socket: Socket,
    exports: readonly ServedExport[],
    { slots, buffers, counters }: { slots: Slots; buffers: BufferCache; counters: NbdCounters },
  ) {
    this.#socket = socket;
    this.#slots = slots;
    this.#buffers = buffers;
    this.#counters = counters;
    this.#session = new ServerSession(exports, (bytes) => this.#send([bytes]), this.#allocate);
    socket.setNoDelay(true);
    this.#timer = setTimeout(() => {
      if (this.#session.agreement === undefined) socket.destroy();
    }, HANDSHAKE_TIMEOUT_MS);
    socket.on('data', (bytes: Buffer) => {
      if (this.#finishing) return;
      this.#session.push(bytes);
      this.#pump();
    });
    socket.on('error', () => {}); // `close` follows: a client may go as it likes.
    socket.on('close', () => {
      clearTimeout(this.#timer);
      this.#closed = true;
    });
  }

  /** Whether the handshake is over. */
  get isServed(): boolean {
    return this.#session.agreement !== undefined;
  }

  /** Answers what is under way, then hangs up; after `limitMs` it hangs up all the same. */
  finish(limitMs = FINISH_TIMEOUT_MS): void {
    this.#finishing = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#socket.destroy(), limitMs);
    this.#socket.resume(); // Only who reads hears that the other side is gone.
    if (this.#requests === 0) this.#socket.end();
  }

  /** Takes requests while there is room for them; who makes room calls again. */
  #pump(): void {
    while (!this.#closed && !this.#finishing) {
      if (this.#requests >= REQUESTS_MAX || this.#bytes >= BYTES_MAX) {
        this.#socket.pause();
        return;
      }
      if (!this.#slots.tryTake()) {
        this.#socket.pause();
        this.#slots.whenFree(this.#pumpAgain);
        return;
      }
      const event = this.#session.next();
      if (typeof event === 'object') {
        void this.#serve(event);
        continue;
      }
      this.#slots.release();
      if (event === 'finish') this.finish();
      else if (event === 'close') {
        this.#counters.refusedConnections++;
        this.finish();
      } else if (this.#socket.isPaused()) this.#socket.resume();
      return;
    }
  }

  async #serve(request: NbdRequest): Promise<void> {
    const bytes = request.type === CMD_READ ? request.lengthBytes : request.data.length;
    this.#requests++;
    this.#bytes += bytes;
    this.#counters.requests++;
    this.#counters[request.type === CMD_READ ? 'bytesRead' : 'bytesWritten'] += bytes;
    const reply = await execute(request, this.#session.agreement!, this.#allocate);
    this.#buffers.give(request.data);
    this.#slots.release();
    this.#send(reply, () => {
      this.#requests--;
      this.#bytes -= bytes;
      if (request.type === CMD_READ) this.#buffers.give(reply.at(-1)!);
      if (!this.#finishing) this.#pump();
      else if (this.#requests === 0) this.#socket.end();
    });
  }

  /** Sends the pieces in order, together with all that is sent in this turn. `sent`: the system has them, or nobody wants them any more. */
  #send(pieces: readonly Uint8Array[], sent?: () => void): void {
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#corked = false;
        this.#socket.uncork();
      });
    }
    const last = pieces.length - 1;
    pieces.forEach((piece, i) => void this.#socket.write(piece, i === last ? sent : undefined));
  }
}
