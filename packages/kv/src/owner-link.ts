import type { Connection } from 'rocev2/internal/cm';
import { NS_PER_MS, RoceError, type RoceErrorCode } from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { type ClientCounters, KvSession } from './session.js';

const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

const LOST: readonly RoceErrorCode[] = [
  'ERR_ROCE_CLOSED',
  'ERR_ROCE_COMPLETION',
  'ERR_ROCE_CONNECT',
  'ERR_ROCE_INVALID_STATE',
];
const PASSING: readonly RoceErrorCode[] = [...LOST, 'ERR_ROCE_TIMEOUT'];

export interface Reconnection {
  readonly connect: () => Promise<Connection>;
  readonly forMs: number;
}

export class OwnerLink {
  readonly #device: RdmaDevice;
  readonly #counters: ClientCounters;
  readonly #reconnection: Reconnection | undefined;
  #session: KvSession | undefined;
  #attempts: Promise<KvSession> | undefined;
  #endPause: () => void = () => {};
  #isClosed = false;

  constructor(
    session: KvSession | undefined,
    device: RdmaDevice,
    counters: ClientCounters,
    reconnection: Reconnection | undefined,
  ) {
    this.#session = session;
    this.#device = device;
    this.#counters = counters;
    this.#reconnection = reconnection;
  }

  get present(): KvSession | undefined {
    if (this.#session?.isOver === true) this.leave(this.#session);
    return this.#session;
  }

  /** Rejects with why the last attempt failed; a later call makes new ones. */
  async session(): Promise<KvSession> {
    const { present } = this;
    if (present !== undefined) return present;
    this.#attempts ??= this.#reach(this.#reconnection!).finally(() => {
      this.#attempts = undefined;
    });
    return this.#attempts;
  }

  lose(session: KvSession, error: unknown): boolean {
    return isOneOf(LOST, error) && this.leave(session);
  }

  leave(session: KvSession): boolean {
    if (this.#reconnection === undefined || this.#isClosed) return false;
    if (this.#session === session) this.#session = undefined;
    void session.close();
    return true;
  }

  async #reach({ connect, forMs }: Reconnection): Promise<KvSession> {
    const endNs = this.#device.clock.nowNs() + forMs * NS_PER_MS;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      try {
        const session = await KvSession.over(await connect(), this.#counters);
        this.#counters.reconnects++;
        this.#session = session;
        return session;
      } catch (error) {
        if (this.#isClosed) throw closed();
        const isHopeless = this.#device.isClosed || !isOneOf(PASSING, error);
        if (isHopeless || this.#device.clock.nowNs() + pauseMs * NS_PER_MS > endNs) throw error;
      }
      await this.#pause(pauseMs);
      if (this.#isClosed) throw closed();
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const { clock } = this.#device;
      const stop = clock.wakeAt(clock.nowNs() + ms * NS_PER_MS, resolve);
      this.#endPause = () => {
        stop();
        resolve();
      };
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endPause();
    await this.#attempts?.catch(() => {});
    await this.#session?.close();
  }
}

function closed(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the reader is closed');
}

function isOneOf(codes: readonly RoceErrorCode[], error: unknown): boolean {
  return error instanceof RoceError && codes.includes(error.code);
}
