/**
 * A client's socket with its requests. Nothing more is read while the client has too much in flight, does not fetch its
 * replies, or is not next.
 */

import type { Socket } from 'node:net';
import type { Clock } from '../../core/clock.js';
import type { FairClient, FairQueue, RequestPace } from '../../core/fair-queue.js';
import type { BufferCache } from './buffer-cache.js';
import { execute, executePart, readInParts, type ServedExport, takesTurns } from './execute.js';
import { memoryOf, type NbdRequest, PART_BYTES, refusalOf } from './protocol/nbd-request.js';
import { NbdServerSession } from './protocol/nbd-server-session.js';
import { CMD_READ } from './protocol/wire.js';
import { acceptTls, type TlsConfig } from './tls/server-tls.js';

const REQUESTS_MAX = 256;
/** Their bytes; one more request, of 32 MiB at most, may be taken when this is not reached. */
const BYTES_MAX = 32 << 20;
/** Replies leave in pieces of this size, so that it shows whether the client gets on. */
const PIECE_BYTES = 1 << 20;
/** TCP keep-alive: idle time after which the host of a client is probed. */
const KEEP_ALIVE_MS = 60_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** For the last replies; as long as a disk may take. */
const FINISH_TIMEOUT_MS = 30_000;
const NOTHING = new Uint8Array(0);

/** Counters of all connections of a server. */
export interface NbdCounters {
  /** Clients that connected. */
  connections: number;
  /** Sessions ended because the client broke the protocol or asked for an unknown export. */
  refusedConnections: number;
  /** Sessions that were upgraded to TLS. */
  tlsSessions: number;
  /** Connections closed because the client requested TLS and then failed or abandoned the handshake. */
  tlsFailures: number;
  /** Connections closed for lack of room: new ones, or silent ones that made room. */
  turnedAway: number;
  /**
   * Connections closed because they kept memory that others waited for, and neither fetched their replies nor finished
   * their request.
   */
  timedOut: number;
  /** Requests received, including failed ones. */
  requests: number;
  /** Bytes requested by READs. */
  bytesRead: number;
  /** Bytes received with WRITEs. */
  bytesWritten: number;
}

export interface NbdShared {
  readonly queue: FairQueue;
  /** Turns at the disk of writes and of parts of reads. */
  readonly turns: FairQueue;
  readonly buffers: BufferCache;
  readonly counters: NbdCounters;
  readonly clock: Clock;
  readonly tls?: TlsConfig | undefined;
}

type HeldReply = readonly [pieces: readonly Uint8Array[], sent: (() => void) | undefined];

export class NbdServerConnection {
  #socket: Socket;
  readonly #session: NbdServerSession<ServedExport>;
  readonly #shared: NbdShared;
  readonly #client: FairClient;
  readonly #turns: FairClient;
  readonly #allocate = (bytes: number): Uint8Array => this.#shared.buffers.take(bytes);
  #timer: NodeJS.Timeout;
  #movedNs: number;
  #requests = 0;
  #bytes = 0;
  #isAsking = false;
  #room: number | undefined;
  /** The request that has room has a place among the requests that need no turn. */
  #hasSlot = false;
  #finishing = false;
  #closed = false;
  #corked = false;
  /** READs in parts: their replies leave one after the other. */
  #parted: Promise<void> = Promise.resolve();
  /** Replies that wait until that of a READ in parts has left; undefined: none leaves. */
  #behindParts: HeldReply[] | undefined;

  constructor(socket: Socket, exports: readonly ServedExport[], shared: NbdShared) {
    this.#socket = socket;
    this.#shared = shared;
    this.#movedNs = shared.clock.nowNs();
    this.#client = shared.queue.join({
      stuckSinceNs: () => (this.#owes ? this.#movedNs : Number.POSITIVE_INFINITY),
      onStuck: () => {
        shared.counters.timedOut++;
        this.#socket.destroy();
      },
    });
    this.#turns = shared.turns.join();
    this.#session = new NbdServerSession(exports, (bytes) => this.#send([bytes]), {
      allocate: this.#allocate,
      tls: shared.tls?.policy ?? 'off',
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    this.#timer = setTimeout(() => {
      if (this.#session.agreement === undefined) socket.destroy();
    }, HANDSHAKE_TIMEOUT_MS);
    this.#hear(socket);
    socket.on('close', () => {
      clearTimeout(this.#timer);
      this.#closed = true;
      this.#client.leave();
      this.#turns.leave();
      if (this.#room === undefined) return;
      if (this.#hasSlot) this.#client.done();
      this.#client.give(this.#room);
    });
  }

  get isServed(): boolean {
    return this.#session.agreement !== undefined;
  }

  get #owes(): boolean {
    return this.#room !== undefined || this.#socket.writableLength > 0;
  }

  finish(limitMs = FINISH_TIMEOUT_MS): void {
    this.#finishing = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#socket.destroy(), limitMs);
    this.#socket.resume(); // Only a reading socket notices that the peer has closed.
    if (this.#requests === 0) this.#socket.end();
  }

  #hear(socket: Socket): void {
    socket.on('data', (bytes: Buffer) => {
      if (this.#finishing) return;
      this.#movedNs = this.#shared.clock.nowNs();
      this.#session.push(bytes);
      this.#pump();
    });
    socket.on('error', () => {});
  }

  async #startTls(plain: Socket, { credentials }: TlsConfig): Promise<void> {
    const { counters } = this.#shared;
    plain.pause();
    plain.removeAllListeners('data');
    // The answer to STARTTLS is the last that is sent in the clear.
    await new Promise((resolve) => plain.write(NOTHING, resolve));
    try {
      this.#socket = await acceptTls(plain, credentials);
    } catch {
      counters.tlsFailures++;
      plain.destroy();
      return;
    }
    if (this.#finishing) {
      this.#socket.destroy();
      return;
    }
    counters.tlsSessions++;
    this.#session.secured();
    this.#hear(this.#socket);
  }

  #pump(): void {
    while (!this.#closed && !this.#finishing) {
      const upcoming = this.#session.upcoming();
      if (upcoming === 'starttls') {
        void this.#startTls(this.#socket, this.#shared.tls!);
        return;
      }
      if (upcoming === 'close') this.#shared.counters.refusedConnections++;
      if (typeof upcoming === 'string') {
        this.finish();
        return;
      }
      if (upcoming !== undefined && !this.#hasRoomFor(upcoming)) {
        this.#socket.pause();
        return;
      }
      const request = upcoming && this.#session.next();
      if (request === undefined) {
        if (this.#socket.isPaused()) this.#socket.resume();
        return;
      }
      const bytes = this.#room ?? 0;
      this.#room = undefined;
      void this.#serve(request, bytes);
    }
  }

  #hasRoomFor(request: NbdRequest): boolean {
    if (this.#room !== undefined) return true;
    if (this.#isAsking || this.#requests >= REQUESTS_MAX || this.#bytes >= BYTES_MAX) return false;
    const bytes = this.#memoryFor(request);
    let isLater = false;
    this.#isAsking = true;
    const granted = () => {
      this.#isAsking = false;
      this.#room = bytes;
      this.#hasSlot = !takesTurns(request);
      if (!this.#hasSlot) this.#client.done();
      if (isLater) this.#pump();
    };
    this.#client.ask(bytes, granted, this.#limitOf(request));
    isLater = true;
    return this.#room !== undefined;
  }

  /** While other clients hold the pool, a long READ takes memory for a part, which the client's share has. */
  #memoryFor(request: NbdRequest): number {
    const bytes = memoryOf(request);
    if (request.type !== CMD_READ || bytes <= PART_BYTES || this.#client.hasRoomFor(bytes)) return bytes;
    const agreement = this.#session.agreement!;
    const mayPart = PART_BYTES % agreement.export.blockBytes === 0 && refusalOf(request, agreement) === undefined;
    return mayPart ? PART_BYTES : bytes;
  }

  /** A request in parts counts as one of its whole length. */
  #limitOf(request: NbdRequest): RequestPace | undefined {
    const { part } = request;
    const { limit } = this.#session.agreement!.export;
    if (limit === undefined) return undefined;
    if (part?.isFirst === false) return undefined;
    const wholeBytes = part?.whole.lengthBytes ?? memoryOf(request);
    return {
      get readyNs() {
        return limit.readyNs;
      },
      take: (_, nowNs) => limit.take(wholeBytes, nowNs),
    };
  }

  async #serve(request: NbdRequest, bytes: number): Promise<void> {
    const { buffers, counters } = this.#shared;
    const isRead = request.type === CMD_READ;
    this.#requests++;
    this.#bytes += bytes;
    if (request.part?.isFirst !== false) counters.requests++;
    counters[isRead ? 'bytesRead' : 'bytesWritten'] += memoryOf(request);
    const agreement = this.#session.agreement!;
    const sent = (data?: Uint8Array) => {
      this.#requests--;
      this.#bytes -= bytes;
      if (data !== undefined) buffers.give(data);
      this.#client.give(bytes);
      if (!this.#finishing) this.#pump();
      else if (this.#requests === 0) this.#socket.end();
    };
    if (bytes < memoryOf(request)) {
      this.#parted = this.#parted.then(async () => {
        const buffer = this.#allocate(bytes);
        await this.#sendInParts(request, buffer);
        sent(buffer);
      });
      return;
    }
    const reply =
      request.part === undefined
        ? await execute(request, agreement, this.#allocate, this.#turns)
        : await executePart(request, request.part, agreement, this.#turns);
    buffers.give(request.data);
    if (!takesTurns(request)) this.#client.done();
    if (reply.length === 0) sent();
    else this.#send(reply, () => sent(isRead ? reply.at(-1) : undefined));
  }

  async #sendInParts(request: NbdRequest, buffer: Uint8Array): Promise<void> {
    const held: HeldReply[] = [];
    this.#behindParts = held;
    const send = (pieces: readonly Uint8Array[]) =>
      new Promise<boolean>((resolve) => void this.#write(pieces, () => resolve(!this.#closed)));
    const isWhole = await readInParts(request, this.#session.agreement!, buffer, this.#turns, send);
    this.#behindParts = undefined;
    if (!isWhole) this.#socket.destroy();
    for (const [pieces, sent] of held) this.#write(pieces, sent);
  }

  #send(pieces: readonly Uint8Array[], sent?: () => void): void {
    if (this.#behindParts === undefined) this.#write(pieces, sent);
    else this.#behindParts.push([pieces, sent]);
  }

  #write(pieces: readonly Uint8Array[], sent?: () => void): void {
    if (!this.#corked) {
      const socket = this.#socket;
      this.#corked = true;
      socket.cork();
      process.nextTick(() => {
        this.#corked = false;
        socket.uncork();
      });
    }
    const last = pieces.length - 1;
    pieces.forEach((piece, i) => void this.#writePiece(piece, i === last ? sent : undefined));
  }

  #writePiece(piece: Uint8Array, sent: (() => void) | undefined): void {
    let at = 0;
    for (; piece.length - at > PIECE_BYTES; at += PIECE_BYTES) {
      this.#socket.write(piece.subarray(at, at + PIECE_BYTES), () => {
        this.#movedNs = this.#shared.clock.nowNs();
      });
    }
    this.#socket.write(piece.subarray(at), () => {
      this.#movedNs = this.#shared.clock.nowNs();
      sent?.();
    });
  }
}
