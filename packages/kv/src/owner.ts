import { type Handlers, type RpcServer, serveRpc } from '@rocev2/rpc';
import type { Connection } from 'rocev2/internal/cm';
import {
  type Clock,
  NS_PER_MS,
  RoceError,
  WAIT_OPTIONS,
  WaitDeadline,
  type WaitOptions,
  waitForEvent,
} from 'rocev2/internal/core';
import { Access, type MemoryRegion } from 'rocev2/internal/verbs';
import { type Codec, decoded, encoded } from './codec.js';
import {
  checkKeys,
  checkTtl,
  checkVersion,
  type Key,
  type Kv,
  type KvEntry,
  type KvEvent,
  keyBytes,
  type ScanOptions,
  type SetOptions,
} from './kv.js';
import {
  KV_SERVICE,
  SCAN_MAX,
  type ScanPage,
  type ScanResult,
  type ToldEntry,
  type WriteOp,
  type WriteResult,
} from './protocol.js';
import type { KvRecord } from './record.js';
import type { KvCounters, KvStore } from './store.js';
import { Watchers } from './watchers.js';
import { type Executed, Writes } from './writes.js';

const SWEEP_EVERY_MS = 100;
const SWEEP_SHARE = 50;

const SET_OPTIONS = { ...WAIT_OPTIONS, ttlMs: true } as const;
const SCAN_OPTIONS = { ...WAIT_OPTIONS, prefix: true } as const;

interface Reader {
  readonly connection: Connection;
  readonly server: RpcServer;
  readonly region: MemoryRegion;
}

/** The side that owns the entries. */
export class KvOwner<V> implements Kv<V> {
  readonly #store: KvStore;
  readonly #codec: Codec<V>;
  readonly #clock: Clock;
  readonly #writes: Writes;
  readonly #watchers = new Watchers();
  readonly #readers = new Set<Reader>();
  #stopSweep: () => void = () => {};
  #isClosed = false;

  /** @internal */
  constructor(store: KvStore, codec: Codec<V>, clock: Clock) {
    this.#store = store;
    this.#codec = codec;
    this.#clock = clock;
    this.#writes = new Writes(clock);
    store.onChange = (change) => this.#watchers.tell(change);
    this.#sweepLater();
  }

  /** Readers that are connected. */
  get readers(): number {
    return this.#readers.size;
  }

  /** Entries, with those that have expired and were not removed yet. */
  get size(): number {
    return this.#store.size;
  }

  /** A copy of the counters. */
  counters(): KvCounters {
    return { ...this.#store.counters };
  }

  /** Serves a reader. The store takes over all messages of the connection. @internal */
  async add(connection: Connection): Promise<void> {
    const region = await connection.register(this.#store.region, Access.REMOTE_READ);
    const server = serveRpc(connection, KV_SERVICE, this.#handlersFor(region), { valueBytesMax: this.#callBytesMax() });
    const reader: Reader = { connection, server, region };
    this.#readers.add(reader);
    if (this.#isClosed) await this.#end(reader);
    await connection.peerClosed();
    await this.#end(reader);
  }

  /**
   * Revokes the access of all connected readers: their next READ fails and ends their connection. They
   * may connect again.
   */
  async revoke(): Promise<void> {
    await Promise.all([...this.#readers].map(({ region }) => region.close()));
  }

  async #end(reader: Reader): Promise<void> {
    this.#readers.delete(reader);
    await reader.server.close();
  }

  #callBytesMax(): number {
    const { keyBytesMax, valueBytesMax } = this.#store.geometry;
    return 2 * (keyBytesMax + valueBytesMax) + (1 << 20);
  }

  #handlersFor({ addr, rkey, length }: MemoryRegion): Handlers<typeof KV_SERVICE> {
    return {
      open: () => ({ addr: String(addr), rkey, length, nowMs: Math.floor(this.#clock.nowNs() / NS_PER_MS) }),
      write: (ops) => Promise.all(ops.map((op) => this.#write(op))),
      read: ({ key }) => {
        const record = this.#store.get(Buffer.from(key));
        return record === undefined ? {} : { entry: told(record) };
      },
      scan: (page) => this.#scan(page),
      watch: ({ prefix, isResumed }, { signal }) => this.#watchers.watch(Buffer.from(prefix), signal, isResumed),
      touch: ({ keys }) => {
        for (const key of keys) this.#store.touch(Buffer.from(key));
        return {};
      },
    };
  }

  async #write(op: WriteOp): Promise<WriteResult> {
    try {
      const key = Buffer.from(op.key);
      const written = await this.#writes.run(() =>
        op.kind === 'delete'
          ? this.#store.delete(key, op.ifVersion)
          : this.#store.set(key, Buffer.from(op.value!), { ttlMs: op.ttlMs, ifVersion: op.ifVersion }),
      );
      return written.outcome === 'done' ? { done: written.version } : { conflict: written.version };
    } catch (error) {
      if (!(error instanceof RoceError)) throw error;
      return { error: error.code, message: error.message };
    }
  }

  #scan({ cursor, prefix }: ScanPage): ScanResult {
    const start = Buffer.from(prefix);
    const { records, next } = this.#store.scan(cursor, SCAN_MAX);
    const entries: ToldEntry[] = [];
    for (const record of records) if (record.key.subarray(0, start.length).equals(start)) entries.push(told(record));
    return { entries, next: next ?? -1 };
  }

  #sweepLater(): void {
    this.#stopSweep = this.#clock.wakeAt(this.#clock.nowNs() + SWEEP_EVERY_MS * NS_PER_MS, () => {
      this.#store.sweep(Math.ceil(this.#store.geometry.buckets / SWEEP_SHARE));
      this.#sweepLater();
    });
  }

  /** The value of a key; undefined if there is no such entry. */
  async get(key: Key, options?: WaitOptions): Promise<V | undefined> {
    return (await this.getEntry(key, options))?.value;
  }

  /** The same with its version. */
  async getEntry(key: Key, options?: WaitOptions): Promise<KvEntry<V> | undefined> {
    WaitDeadline.of('getEntry', options, this.#clock);
    const record = this.#store.get(keyBytes(key));
    if (record === undefined) return undefined;
    return { value: decoded(this.#codec, Buffer.from(record.value)), version: record.version };
  }

  /** The values of several keys. */
  async getMany(keys: readonly Key[], options?: WaitOptions): Promise<(V | undefined)[]> {
    checkKeys(keys);
    return Promise.all(keys.map((key) => this.get(key, options)));
  }

  /** Whether there is such an entry. */
  async has(key: Key, options?: WaitOptions): Promise<boolean> {
    WaitDeadline.of('has', options, this.#clock);
    return this.#store.get(keyBytes(key)) !== undefined;
  }

  /** Writes a value. It waits only while freed memory must keep its content. */
  async set(key: Key, value: V, options: SetOptions = {}): Promise<number> {
    return (await this.#set('set', { key, value, ifVersion: undefined }, options)).version;
  }

  /** Writes a value if the entry has `version`. */
  async compareAndSet(key: Key, version: number, value: V, options: SetOptions = {}): Promise<number | undefined> {
    checkVersion(version);
    const written = await this.#set('compareAndSet', { key, value, ifVersion: version }, options);
    return written.outcome === 'done' ? written.version : undefined;
  }

  async #set(
    call: string,
    { key, value, ifVersion }: { key: Key; value: V; ifVersion: number | undefined },
    options: SetOptions,
  ): Promise<Executed> {
    const deadline = WaitDeadline.of(call, options, this.#clock, SET_OPTIONS);
    const { ttlMs } = options;
    checkTtl(ttlMs);
    const [name, bytes] = [Buffer.from(keyBytes(key)), encoded(this.#codec, value)];
    return waitForEvent(
      deadline,
      this.#writes.run(() => this.#store.set(name, bytes, { ttlMs, ifVersion })),
    );
  }

  /** Removes an entry. */
  async delete(key: Key, options?: WaitOptions): Promise<boolean> {
    const deadline = WaitDeadline.of('delete', options, this.#clock);
    const name = Buffer.from(keyBytes(key));
    const { version } = await waitForEvent(
      deadline,
      this.#writes.run(() => this.#store.delete(name)),
    );
    return version !== 0;
  }

  /** All entries. */
  async *entries(options: ScanOptions = {}): AsyncGenerator<[Buffer, KvEntry<V>], void, undefined> {
    WaitDeadline.of('entries', options, this.#clock, SCAN_OPTIONS);
    const prefix = keyBytes(options.prefix ?? '');
    for (let cursor = 0; cursor >= 0; ) {
      const { entries, next } = this.#scan({ cursor, prefix });
      for (const { key, value, version } of entries)
        yield [Buffer.from(key), { value: decoded(this.#codec, Buffer.from(value)), version }];
      cursor = next;
    }
  }

  /** Changes of all keys that begin with `prefix`. */
  watch(prefix: Key = '', options: WaitOptions = {}): AsyncIterableIterator<KvEvent> {
    WaitDeadline.of('watch', options, this.#clock);
    return this.#watchers.watch(Buffer.from(keyBytes(prefix)), options.signal);
  }

  /** Ends the store and the connections of all readers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopSweep();
    this.#writes.close();
    this.#watchers.close();
    await Promise.all([...this.#readers].map((reader) => this.#end(reader)));
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Views become copies: the answer leaves later than this. */
function told({ key, value, version }: KvRecord): ToldEntry {
  return { key: Buffer.from(key), value: Buffer.from(value), version };
}
