/**
 * Keeps one session connected: over the transport the host's path prefers, over the other one when that fails, again and again until it
 * succeeds. A session that has been without a connection for too long fails its requests until it has one. Moves it between transports without a gap: the new connection is made before
 * the old one is given up.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import { type Clock, pause } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { PromiseMutex } from '../../core/promise-mutex.js';
import { NotOwnerRedirect } from '../sk/not-owner-redirect.js';

/** What a session needs a connection to be. */
export interface KeptChannel {
  /** Which transport it uses. */
  readonly transport: HostTransport;
  /** When it resolves no peer reaches memory through it any more. */
  close(): Promise<void>;
}

/** What outlives its connections: a session of a disk, or a stream. */
export interface KeptSession<C extends KeptChannel> {
  /** Called when the connection has failed. */
  onLost: (channel: C, error: Error) => void;
  /** Of the connection it has now. */
  readonly transport: HostTransport | undefined;
  /** It takes no connection any more. */
  readonly isEnded: boolean;
  /** How fast the connection it has is. */
  readonly latency: {
    /** Nanoseconds; undefined: not known. */
    readonly p99Ns: number | undefined;
  };
  /** Goes on over a connection, after it has closed the one before. Rejects, and closes the new one, when that fails. */
  resume(channel: C): Promise<void>;
  /** Waits for what is under way, and begins nothing, until `resume`. False: not all has come to its end. */
  drain(timeoutNs: number): Promise<boolean>;
  /** There may be no connection for long: what waits fails. */
  suspend(error: Error): void;
  /** Announces the end to the peer. */
  closeGracefully(timeoutNs: number): Promise<void>;
  /** Fails everything, now and later, and closes the connection. */
  end(error: Error): Promise<void>;
  /** Ends the connection as if it had failed. */
  breakConnection(why: string): void;
  /** Ends the connection because what it is for is elsewhere by now. */
  leave?(): void;
}

/** Makes a connection that can send. */
export type Dial<C extends KeptChannel> = () => Promise<C>;
/** By transport; absent ones are not used. */
export type Dialers<C extends KeptChannel> = Readonly<Partial<Record<HostTransport, Dial<C>>>>;

interface ReconnectorOptions<C extends KeptChannel, S extends KeptSession<C>> {
  readonly session: S;
  readonly dial: Dialers<C>;
  readonly clock: Clock;
  /** Finds out where to connect. Rejects if nobody knows. */
  readonly locate?: () => Promise<void>;
  /** What to try, in this order. */
  readonly order: () => readonly HostTransport[];
  /** A connection, or an attempt to make one, has failed. */
  readonly onFailure: (transport: HostTransport, error: Error) => void;
  /** It has a connection again, or none by any transport, because of `error`. */
  readonly onReach: (error: Error | undefined) => void;
  /** A session that cannot be connected for so long fails its requests; default: never. */
  readonly giveUpNs?: number;
}

const FIRST_PAUSE_NS = 50e6;
/** A server that was started anew is found soon: what it has to do first takes longer than that. */
const PAUSE_MAX_NS = 500e6;
/** How long a move waits for requests under way before it has them sent again. */
const DRAIN_NS = 2e9;
/** How long the end waits for a connection, so that what is under way is answered. */
const CLOSING_NS = 2e9;
/** How long a graceful close waits for the server; otherwise the lease expires. */
const GRACEFUL_CLOSE_NS = 1e9;

/** One session and the connection it has now. */
export class Reconnector<C extends KeptChannel, S extends KeptSession<C>> {
  /** The session; it takes requests whether there is a connection or not. */
  readonly session: S;
  /** From the loss of a connection to the first request over the next, newest last. */
  readonly pausesNs: number[] = [];
  readonly #options: ReconnectorOptions<C, S>;
  /** Connecting or moving: one thing at a time. */
  readonly #mutex = new PromiseMutex();
  #closed = false;
  /** From here on requests without a connection fail, whatever `giveUpNs` says. */
  #deadlineNs = Number.POSITIVE_INFINITY;

  constructor(options: ReconnectorOptions<C, S>) {
    this.#options = options;
    this.session = options.session;
    this.session.onLost = (channel, error) => {
      void this.#mutex.run(() => this.#recover(channel, error)).catch(() => {}); // The session has told its users.
    };
  }

  /** Of the connection it has; undefined while there is none. */
  get transport(): HostTransport | undefined {
    return this.session.transport;
  }

  /** Makes the first connection. Rejects when neither transport works. */
  connect(): Promise<void> {
    return this.#mutex.run(async () => {
      const error = await this.#connectOnce();
      if (error !== undefined) throw error;
    });
  }

  /** Make before break. False when it did not work: the session is where it was, or wherever it could be connected. */
  moveTo(transport: HostTransport): Promise<boolean> {
    return this.#mutex.run(async () => {
      const dial = this.#options.dial[transport];
      if (this.#closed || dial === undefined) return false;
      if (this.transport === transport) return true;
      let channel: C;
      try {
        channel = await dial();
      } catch (error) {
        this.#options.onFailure(transport, error as Error);
        return false;
      }
      await this.session.drain(DRAIN_NS);
      try {
        await this.session.resume(channel);
        return true;
      } catch (error) {
        this.#options.onFailure(transport, error as Error);
        await this.#reconnect(this.#options.clock.nowNs());
        return false;
      }
    });
  }

  /** Requests that have no connection within 2 s fail. */
  shortenDeadline(): void {
    this.#deadlineNs = Math.min(this.#deadlineNs, this.#options.clock.nowNs() + CLOSING_NS);
  }

  /** Ends the session; requests that are not answered fail with ESHUTDOWN. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.session.closeGracefully(GRACEFUL_CLOSE_NS);
    await this.session.end(new RoceError('ERR_ROCE_CLOSED', 'the session is closed'));
    await this.#mutex.settled;
  }

  async #recover(lost: C, error: Error): Promise<void> {
    const sinceNs = this.#options.clock.nowNs();
    if (!isElsewhere(error)) this.#options.onFailure(lost.transport, error);
    // Its queue pair is gone and its keys are retired before a request goes out again. What else it cannot give back is not in the way:
    // keys of its protection domain mean nothing to the next connection.
    await lost.close().catch(() => {});
    await this.#reconnect(sinceNs);
    this.pausesNs.push(this.#options.clock.nowNs() - sinceNs);
  }

  async #reconnect(sinceNs: number): Promise<void> {
    const { clock, onReach, giveUpNs = Number.POSITIVE_INFINITY } = this.#options;
    for (let pauseNs = FIRST_PAUSE_NS; !this.#closed; pauseNs = Math.min(2 * pauseNs, PAUSE_MAX_NS)) {
      const error = await this.#connectOnce();
      if (this.#closed || this.session.isEnded) return;
      onReach(error);
      if (error === undefined) return;
      if (isFinal(error)) {
        this.session.suspend(error);
        return;
      }
      const now = clock.nowNs();
      if (now - sinceNs >= giveUpNs || now >= this.#deadlineNs) {
        this.session.suspend(new RoceError('ERR_ROCE_CONNECT', `the storage server is gone: ${error.message}`));
      }
      await pause(clock, pauseNs);
    }
  }

  /** Tries each transport once. Undefined when connected; else why the last attempt failed. */
  async #connectOnce(): Promise<Error | undefined> {
    const { dial, locate, order, onFailure } = this.#options;
    let failure: Error = new RoceError('ERR_ROCE_CONNECT', 'no transport to the server is configured');
    try {
      await locate?.();
    } catch (error) {
      return error as Error;
    }
    for (const transport of order()) {
      const connect = dial[transport];
      if (connect === undefined || this.#closed) continue;
      try {
        await this.session.resume(await connect());
        return undefined;
      } catch (error) {
        failure = error as Error;
        // The transport has done its part.
        if (isInUse(failure) || isElsewhere(failure) || isFinal(failure) || this.session.isEnded) return failure;
        onFailure(transport, failure);
      }
    }
    return failure;
  }
}

/** Another client has what the session is for. */
function isInUse(error: Error): boolean {
  return error instanceof RoceError && error.code === 'ERR_ROCE_BUSY';
}

/** The server has answered, and is the wrong one. */
function isElsewhere(error: Error): boolean {
  return error instanceof NotOwnerRedirect;
}

/** Nothing of the session is executed any more, however often it asks. */
function isFinal(error: Error): boolean {
  return error instanceof RoceError && error.code === 'ERR_ROCE_FENCED';
}
