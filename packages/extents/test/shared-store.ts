/**
 * A store that several managers reach over the network of a cluster, as etcd is: requests and answers are lost and cut off, and a transaction may happen after its
 * sender has given up waiting.
 */

import type { Clock } from '../../../src/core/clock.js';
import { LEADER_KEY } from '../src/leader-metadata.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import type { Metadata, Transaction } from '../src/metadata.js';
import type { ClusterNetwork } from './cluster-network.js';

export const STORE = 'store';
const MS = 1e6;

/** The store and the ways to it. */
export class SharedStore {
  /** A share of transactions happens so much later. */
  late = { rate: 0, ms: 0 };
  /** Who watches hears nothing. */
  isSilent = false;
  /** Transactions of one term that happened in another one. */
  readonly problems: string[] = [];
  /** How often a sender did not hear of its transaction. */
  unknown = 0;
  /** Those that happened, in order. */
  readonly transactions: Transaction[] = [];
  #inner: MemoryMetadata;
  readonly #clock: Clock;
  readonly #network: ClusterNetwork;
  readonly #timeoutMs: number;

  constructor(inner: MemoryMetadata, clock: Clock, network: ClusterNetwork, timeoutMs: number) {
    this.#inner = inner;
    this.#clock = clock;
    this.#network = network;
    this.#timeoutMs = timeoutMs;
  }

  /** As a manager reaches it. A manager that has ended hears nothing more, and asks nothing. */
  from(name: string, isAlive: () => boolean): Metadata {
    const call = <T>(work: () => Promise<T>, isCommit = false) => this.#call(name, isAlive, work, isCommit);
    return {
      get: (key) => call(() => this.#inner.get(key)),
      list: (prefix) => call(() => this.#inner.list(prefix)),
      commit: (transaction) => call(() => this.commit(transaction), true),
      renew: (key, version, ttlMs) => call(() => this.#inner.renew(key, version, ttlMs)),
      watch: (prefix, onChange) =>
        this.#inner.watch(prefix, (key) => {
          if (!this.isSilent) this.#network.send(STORE, name, () => isAlive() && onChange(key));
        }),
      close: async () => {},
    };
  }

  /** A leader's transaction has its term in its mark. */
  async commit(transaction: Transaction): Promise<number> {
    const leader = await this.#inner.get(LEADER_KEY);
    const version = await this.#inner.commit(transaction);
    if (version > 0) this.transactions.push(transaction);
    const [, term] = /^(\d+)\.\d+$/.exec(transaction.put?.at(-1)?.value ?? '') ?? [];
    if (version > 0 && term !== undefined && Number(term) !== leader?.version)
      this.problems.push(`a transaction of term ${term} happened in term ${leader?.version}`);
    return version;
  }

  /** It is restored from a snapshot: only the first so many transactions have happened. Leases begin again. */
  async restore(count: number): Promise<void> {
    this.#inner = new MemoryMetadata(this.#clock);
    for (const transaction of this.transactions.splice(0).slice(0, count)) await this.commit(transaction);
  }

  #call<T>(name: string, isAlive: () => boolean, work: () => Promise<T>, isCommit: boolean): Promise<T> {
    if (!isAlive()) return new Promise<never>(() => {});
    return new Promise<T>((resolve, reject) => {
      const wait = (ms: number, then: () => void) => this.#clock.wakeAt(this.#clock.nowNs() + ms * MS, then);
      const cancel = wait(this.#timeoutMs, () => {
        if (isCommit) this.unknown++;
        if (isAlive()) reject(new Error('the store does not answer'));
      });
      const answer = (tell: () => void) =>
        this.#network.send(STORE, name, () => {
          cancel();
          if (isAlive()) tell();
        });
      const begin = () =>
        work().then(
          (value) => answer(() => resolve(value)),
          (error: Error) => answer(() => reject(error)),
        );
      this.#network.send(name, STORE, () => {
        const isLate = isCommit && this.#network.chance(this.late.rate);
        if (isLate) wait(this.late.ms, begin);
        else void begin();
      });
    });
  }
}
