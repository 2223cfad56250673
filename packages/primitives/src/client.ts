import { connectRpc, type RpcClient } from '@rocev2/rpc';
import type { Connection } from 'rocev2/internal/cm';
import {
  checkOptions,
  NS_PER_MS,
  type OptionNames,
  RoceError,
  type RoceErrorCode,
  WAIT_OPTIONS,
  type WaitOptions,
} from 'rocev2/internal/core';
import { RemoteBarrier } from './barrier.js';
import { checkQuestion } from './cells.js';
import { RemoteCounter } from './counter.js';
import type { LeasePlace } from './lease.js';
import { RemoteLock } from './lock.js';
import { type Cell, type CellQuestion, PRIMITIVES_SERVICE } from './protocol.js';
import { RemoteRing } from './ring.js';
import { RemoteSemaphore } from './semaphore.js';
import { RemoteSequencer } from './sequencer.js';
import { ConnectionWords } from './words.js';

/** Options of `Primitives.lock`. */
export interface LockOptions extends WaitOptions {
  /**
   * How long a holder may be silent, whole milliseconds, 10 to 3,600,000. Default: the value of the first client, or
   * 10,000.
   */
  readonly leaseMs?: number | undefined;
}

/** Options of `Primitives.semaphore`. */
export interface SemaphoreOptions extends LockOptions {
  /** Leases at a time, 1 to 128. Required of the first client, optional for others. */
  readonly permits?: number | undefined;
}

/** Options of `Primitives.barrier`. */
export interface BarrierOptions extends WaitOptions {
  /** Arrivals of a round, 1 to 2^32. Required of the first client, optional for others. */
  readonly parties?: number | undefined;
}

const LOCK_OPTIONS: OptionNames<LockOptions> = { ...WAIT_OPTIONS, leaseMs: true };
const SEMAPHORE_OPTIONS: OptionNames<SemaphoreOptions> = { ...LOCK_OPTIONS, permits: true };
const BARRIER_OPTIONS: OptionNames<BarrierOptions> = { ...WAIT_OPTIONS, parties: true };

/**
 * A client's connection to the primitives of an owner; made by `openPrimitives`. Opening a name is a call to the
 * owner's program, which creates new ones. Later operations are one-sided: the owner's program takes no part. All calls
 * reject with ERR_ROCE_MISMATCH for terms that differ from the first client's.
 */
export class Primitives {
  readonly #rpc: RpcClient<typeof PRIMITIVES_SERVICE>;
  readonly #words: ConnectionWords;

  readonly #producer: number;

  private constructor(rpc: RpcClient<typeof PRIMITIVES_SERVICE>, words: ConnectionWords, producer: number) {
    this.#rpc = rpc;
    this.#words = words;
    this.#producer = producer;
  }

  /** Takes over a connection. Rejects with ERR_ROCE_MISMATCH if the peer has no primitives. @internal */
  static async over(connection: Connection): Promise<Primitives> {
    const rpc = connectRpc(connection, PRIMITIVES_SERVICE);
    try {
      const { addr, rkey, producer } = await rpc.methods.region({});
      const words = await ConnectionWords.open(connection, { remoteAddr: BigInt(addr), rkey });
      return new Primitives(rpc, words, producer);
    } catch (error) {
      await rpc.close();
      throw error;
    }
  }

  /** Operations are copies to memory of the owner, a process of the same user on this host: no packets are sent. */
  get mapsRegion(): boolean {
    return this.#words.areMapped;
  }

  /** A number that many change. */
  async counter(name: string, options: WaitOptions = {}): Promise<RemoteCounter> {
    checkOptions('counter', options, WAIT_OPTIONS);
    const { offset } = await this.#cell({ kind: 'counter', name }, options);
    return new RemoteCounter(this.#words, offset);
  }

  /** Numbers that are given out once. */
  async sequencer(name: string, options: WaitOptions = {}): Promise<RemoteSequencer> {
    checkOptions('sequencer', options, WAIT_OPTIONS);
    const { offset } = await this.#cell({ kind: 'sequencer', name }, options);
    return new RemoteSequencer(this.#words, offset);
  }

  /** A lock whose holders have leases and tokens. */
  async lock(name: string, options: LockOptions = {}): Promise<RemoteLock> {
    checkOptions('lock', options, LOCK_OPTIONS);
    const { leaseMs, ...wait } = options;
    const cell = await this.#cell({ kind: 'lock', name, ...(leaseMs !== undefined && { leaseMs }) }, wait);
    return new RemoteLock(this.#leasePlace(`lock '${name}'`, cell));
  }

  /** A semaphore: a limited number of leases at a time. */
  async semaphore(name: string, options: SemaphoreOptions = {}): Promise<RemoteSemaphore> {
    checkOptions('semaphore', options, SEMAPHORE_OPTIONS);
    const { leaseMs, permits: size, ...wait } = options;
    const terms = { ...(leaseMs !== undefined && { leaseMs }), ...(size !== undefined && { size }) };
    const cell = await this.#cell({ kind: 'semaphore', name, ...terms }, wait);
    return new RemoteSemaphore(this.#leasePlace(`semaphore '${name}'`, cell), cell.size);
  }

  /** Blocks until all parties have arrived. */
  async barrier(name: string, options: BarrierOptions = {}): Promise<RemoteBarrier> {
    checkOptions('barrier', options, BARRIER_OPTIONS);
    const { parties: size, ...wait } = options;
    const cell = await this.#cell({ kind: 'barrier', name, ...(size !== undefined && { size }) }, wait);
    return new RemoteBarrier(this.#words, cell.offset, cell.size);
  }

  /** A queue to the owner. Rejects with ERR_ROCE_NOT_FOUND if the owner has not made it. */
  async ring(name: string, options: WaitOptions = {}): Promise<RemoteRing> {
    checkOptions('ring', options, WAIT_OPTIONS);
    const { offset, size: slots, bytes } = await this.#cell({ kind: 'ring', name }, options);
    const wake = () => this.#rpc.methods.wake({ name });
    return new RemoteRing({ words: this.#words, offset, slots, bytes, producer: this.#producer, wake });
  }

  async #cell(question: CellQuestion, wait: WaitOptions): Promise<Cell> {
    checkQuestion(question);
    const answer = await this.#rpc.methods.cell(question, wait);
    if ('error' in answer) throw new RoceError(answer.error as RoceErrorCode, answer.message);
    return answer;
  }

  #leasePlace(title: string, { offset, leaseMs }: Cell): LeasePlace {
    return { words: this.#words, offset, leaseNs: leaseMs * NS_PER_MS, title };
  }

  /** Ends the connection. Leases that were not released end in their own time. */
  close(): Promise<void> {
    return this.#rpc.close();
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
