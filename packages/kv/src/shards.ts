import type { WaitOptions } from 'rocev2/internal/core';
import type { KvClient } from './client.js';
import {
  checkKeys,
  type Key,
  type Kv,
  type KvEntry,
  type KvEvent,
  keyBytes,
  type ScanOptions,
  type SetOptions,
} from './kv.js';
import { merged } from './merged.js';
import { Rendezvous } from './rendezvous.js';
import type { ClientCounters } from './session.js';

export interface Shard<V> {
  readonly name: string;
  readonly client: KvClient<V>;
}

/**
 * The entries of several owners as one store; made by `openKvShards`. The guarantees for one key are those of one
 * owner. An unreachable owner fails only the calls that need it.
 */
export class KvShards<V> implements Kv<V> {
  readonly #clients: ReadonlyArray<KvClient<V>>;
  readonly #names: readonly string[];
  readonly #rendezvous: Rendezvous;

  /** @internal */
  constructor(shards: ReadonlyArray<Shard<V>>) {
    this.#clients = shards.map(({ client }) => client);
    this.#names = shards.map(({ name }) => name);
    this.#rendezvous = new Rendezvous(this.#names);
  }

  /** The name of the owner that has the key. */
  ownerOf(key: Key): string {
    return this.#names[this.#rendezvous.ownerOf(keyBytes(key))];
  }

  #clientOf(key: Key): KvClient<V> {
    return this.#clients[this.#rendezvous.ownerOf(keyBytes(key))];
  }

  /** The value of a key; undefined if there is no such entry. */
  async get(key: Key, options?: WaitOptions): Promise<V | undefined> {
    return this.#clientOf(key).get(key, options);
  }

  /** The same with its version. */
  async getEntry(key: Key, options?: WaitOptions): Promise<KvEntry<V> | undefined> {
    return this.#clientOf(key).getEntry(key, options);
  }

  /** The values of several keys, read concurrently from all their owners. Rejects if one of these cannot be reached. */
  async getMany(keys: readonly Key[], options?: WaitOptions): Promise<(V | undefined)[]> {
    checkKeys(keys);
    const positions = this.#clients.map((): number[] => []);
    for (const [place, key] of keys.entries()) positions[this.#rendezvous.ownerOf(keyBytes(key))].push(place);
    const values = new Array<V | undefined>(keys.length);
    const reading = this.#clients.map(async (client, owner) => {
      const ofOwner = positions[owner];
      if (ofOwner.length === 0) return;
      const found = await client.getMany(
        ofOwner.map((place) => keys[place]),
        options,
      );
      for (const [k, place] of ofOwner.entries()) values[place] = found[k];
    });
    await Promise.all(reading);
    return values;
  }

  /** Whether there is such an entry. */
  async has(key: Key, options?: WaitOptions): Promise<boolean> {
    return this.#clientOf(key).has(key, options);
  }

  /** Asks the owner of the key to write a value. */
  async set(key: Key, value: V, options?: SetOptions): Promise<number> {
    return this.#clientOf(key).set(key, value, options);
  }

  /** Asks the owner of the key to write a value if the entry has `version`. */
  async compareAndSet(key: Key, version: number, value: V, options?: SetOptions): Promise<number | undefined> {
    return this.#clientOf(key).compareAndSet(key, version, value, options);
  }

  /** Asks the owner of the key to remove an entry. */
  async delete(key: Key, options?: WaitOptions): Promise<boolean> {
    return this.#clientOf(key).delete(key, options);
  }

  /** All entries, one owner after another. Rejects if one of them cannot be reached. */
  async *entries(options?: ScanOptions): AsyncGenerator<[Buffer, KvEntry<V>], void, undefined> {
    for (const client of this.#clients) yield* client.entries(options);
  }

  /**
   * Changes of all keys that begin with `prefix`, of all owners, whose changes have no order among them. Ends or
   * rejects with the first owner that does.
   */
  async *watch(prefix: Key = '', options: WaitOptions = {}): AsyncGenerator<KvEvent, void, undefined> {
    const left = new AbortController();
    const signal = options.signal === undefined ? left.signal : AbortSignal.any([options.signal, left.signal]);
    try {
      yield* merged(this.#clients.map((client) => client.watch(prefix, { ...options, signal })));
    } finally {
      left.abort();
    }
  }

  /** Counters of all clients together; a copy. */
  counters(): ClientCounters {
    const sum = this.#clients[0].counters();
    for (const client of this.#clients.slice(1))
      for (const [name, count] of Object.entries(client.counters())) sum[name as keyof ClientCounters] += count;
    return sum;
  }

  /** Ends the connections to all owners. */
  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
