/**
 * Keeps one session connected, over the preferred transport or the other, retrying until it succeeds. After too long
 * without a connection its requests fail. A planned move makes the new connection before the old one is given up.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import { type Clock, pause } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { PromiseMutex } from '../../core/promise-mutex.js';
import { NotOwnerRedirect } from '../sk/not-owner-redirect.js';

export interface KeptChannel {
  readonly transport: HostTransport;
  close(): Promise<void>;
}

export interface KeptSession<C extends KeptChannel> {
  onLost: (channel: C, error: Error) => void;
  readonly transport: HostTransport | undefined;
  readonly isEnded: boolean;
  readonly latency: {
    readonly p99Ns: number | undefined;
  };
  /** Rejects, and closes the new one, when that fails. */
  resume(channel: C): Promise<void>;
  drain(timeoutNs: number): Promise<boolean>;
  suspend(error: Error): void;
  /** Announces the end to the peer. */
  closeGracefully(timeoutNs: number): Promise<void>;
  end(error: Error): Promise<void>;
  breakConnection(why: string): void;
  leave?(): void;
}

export type Dial<C extends KeptChannel> = () => Promise<C>;
/** By transport; absent ones are not used. */
export type Dialers<C extends KeptChannel> = Readonly<Partial<Record<HostTransport, Dial<C>>>>;

interface ReconnectorOptions<C extends KeptChannel, S extends KeptSession<C>> {
  readonly session: S;
  readonly dial: Dialers<C>;
  readonly clock: Clock;
  readonly locate?: () => Promise<void>;
  readonly order: () => readonly HostTransport[];
  readonly onFailure: (transport: HostTransport, error: Error) => void;
  readonly onReach: (error: Error | undefined) => void;
  readonly giveUpNs?: number;
}

const FIRST_PAUSE_NS = 50e6;
/** A restarted server is found soon: its start takes longer than that. */
const PAUSE_MAX_NS = 500e6;
/** How long a move waits for requests in flight before it has them retransmitted. */
const DRAIN_NS = 2e9;
/** How long the end waits for a connection, so that what is in flight is answered. */
const CLOSING_NS = 2e9;
/** How long a graceful close waits for the server; otherwise the lease expires. */
const GRACEFUL_CLOSE_NS = 1e9;

export class Reconnector<C extends KeptChannel, S extends KeptSession<C>> {
  readonly session: S;
  readonly pausesNs: number[] = [];
  readonly #options: ReconnectorOptions<C, S>;
  readonly #mutex = new PromiseMutex();
  #closed = false;
  /** From here on requests without a connection fail, regardless of `giveUpNs`. */
  #deadlineNs = Number.POSITIVE_INFINITY;

  constructor(options: ReconnectorOptions<C, S>) {
    this.#options = options;
    this.session = options.session;
    this.session.onLost = (channel, error) => {
      void this.#mutex.run(() => this.#recover(channel, error)).catch(() => {});
    };
  }

  get transport(): HostTransport | undefined {
    return this.session.transport;
  }

  connect(): Promise<void> {
    return this.#mutex.run(async () => {
      const error = await this.#connectOnce();
      if (error !== undefined) throw error;
    });
  }

  /** False when it did not work: the session is where it was, or wherever it could be connected. */
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

  async close(): Promise<void> {
    this.#closed = true;
    await this.session.closeGracefully(GRACEFUL_CLOSE_NS);
    await this.session.end(new RoceError('ERR_ROCE_CLOSED', 'the session is closed'));
    await this.#mutex.settled;
  }

  async #recover(lost: C, error: Error): Promise<void> {
    const sinceNs = this.#options.clock.nowNs();
    if (!isElsewhere(error)) this.#options.onFailure(lost.transport, error);
    // Its queue pair is destroyed and its keys are retired before a request is sent again. Other resources that it
    // cannot release are harmless: the next connection does not use keys of its protection domain.
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
        if (isInUse(failure) || isElsewhere(failure) || isFinal(failure) || this.session.isEnded) return failure;
        onFailure(transport, failure);
      }
    }
    return failure;
  }
}

function isInUse(error: Error): boolean {
  return error instanceof RoceError && error.code === 'ERR_ROCE_BUSY';
}

function isElsewhere(error: Error): boolean {
  return error instanceof NotOwnerRedirect;
}

function isFinal(error: Error): boolean {
  return error instanceof RoceError && error.code === 'ERR_ROCE_FENCED';
}
