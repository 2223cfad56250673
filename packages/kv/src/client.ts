import type { Connection } from 'rocev2/internal/cm';
import {
  type CancellationState,
  type Clock,
  checkObject,
  RoceError,
  type RoceErrorCode,
  WAIT_OPTIONS,
  WaitDeadline,
  type WaitOptions,
  waitFor,
  waitForEvent,
} from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { type Codec, decoded, encoded } from './codec.js';
import type { Geometry } from './geometry.js';
import {
  checkKeys,
  checkTtl,
  checkVersion,
  type Key,
  type Kv,
  type KvEntry,
  type KvEvent,
  keyBytes,
  ownKeyBytes,
  type ScanOptions,
  type SetOptions,
} from './kv.js';
import { OwnerLink, type Reconnection } from './owner-link.js';
import type { WriteOp, WriteResult } from './protocol.js';
import { noLookups } from './remote-table.js';
import { type ClientCounters, type FoundValue, KvSession } from './session.js';
import { checkKeyBytes } from './store.js';

const SET_OPTIONS = { ...WAIT_OPTIONS, ttlMs: true } as const;
const SCAN_OPTIONS = { ...WAIT_OPTIONS, prefix: true } as const;

/** The entries of an owner, as a reader sees them; made by `openKv`. */
export class KvClient<V> implements Kv<V> {
  readonly #link: OwnerLink;
  readonly #codec: Codec<V>;
  readonly #clock: Clock;
  readonly #counters: ClientCounters;

  private constructor(link: OwnerLink, codec: Codec<V>, clock: Clock, counters: ClientCounters) {
    this.#link = link;
    this.#codec = codec;
    this.#clock = clock;
    this.#counters = counters;
  }

  /**
   * Takes over a connection to an owner. Rejects with ERR_ROCE_MISMATCH if the peer is none, or has another layout.
   * @internal
   */
  static async over<V>(connection: Connection, codec: Codec<V>, reconnection?: Reconnection): Promise<KvClient<V>> {
    const { device } = connection;
    const counters: ClientCounters = { ...noLookups(), asked: 0, reconnects: 0 };
    const session = await KvSession.over(connection, counters);
    return new KvClient(new OwnerLink(session, device, counters, reconnection), codec, device.clock, counters);
  }

  /** A client that connects with its first call, and again after the end of a connection. @internal */
  static of<V>(device: RdmaDevice, codec: Codec<V>, reconnection: Reconnection): KvClient<V> {
    const counters: ClientCounters = { ...noLookups(), asked: 0, reconnects: 0 };
    return new KvClient(new OwnerLink(undefined, device, counters, reconnection), codec, device.clock, counters);
  }

  /** Connects if it has not. Rejects as the connection does. @internal */
  async reach(options?: WaitOptions): Promise<void> {
    const deadline = WaitDeadline.of('reach', options, this.#clock);
    await waitForEvent(deadline, this.#link.session());
  }

  /** A copy of the counters. */
  counters(): ClientCounters {
    return { ...this.#counters };
  }

  /** The value of a key. One or two READs; the owner's program takes no part. */
  async get(key: Key, options?: WaitOptions): Promise<V | undefined> {
    const found = await this.#get('get', key, options);
    return found && decoded(this.#codec, found.value);
  }

  /** The same with its version. */
  async getEntry(key: Key, options?: WaitOptions): Promise<KvEntry<V> | undefined> {
    const found = await this.#get('getEntry', key, options);
    return found && { value: decoded(this.#codec, found.value), version: found.version };
  }

  /** The values of several keys, read concurrently. */
  async getMany(keys: readonly Key[], options?: WaitOptions): Promise<(V | undefined)[]> {
    checkKeys(keys);
    return Promise.all(keys.map((key) => this.get(key, options)));
  }

  /** Whether there is such an entry. */
  async has(key: Key, options?: WaitOptions): Promise<boolean> {
    return (await this.#get('has', key, options)) !== undefined;
  }

  #get(call: string, key: Key, options: WaitOptions | undefined): Promise<FoundValue | undefined> {
    const deadline = WaitDeadline.of(call, options, this.#clock);
    const name = ownKeyBytes(key);
    this.#counters.gets++;
    return waitFor(deadline, (cancellation) => this.#find(name, cancellation));
  }

  /** A GET may be repeated: it changes nothing. */
  async #find(key: Buffer, cancellation: CancellationState): Promise<FoundValue | undefined> {
    for (;;) {
      const session = this.#link.present ?? (await this.#link.session());
      checkKeyBytes(key, session.geometry.keyBytesMax);
      try {
        return await session.find(key);
      } catch (error) {
        if (!this.#link.lose(session, error) || cancellation.error !== undefined) throw error;
      }
    }
  }

  /** Asks the owner to write a value. */
  async set(key: Key, value: V, options: SetOptions = {}): Promise<number> {
    const result = await this.#write('set', this.#setOp(key, value, options), options);
    return 'done' in result ? result.done : 0;
  }

  /** Asks the owner to write a value if the entry has `version`. */
  async compareAndSet(key: Key, version: number, value: V, options: SetOptions = {}): Promise<number | undefined> {
    checkVersion(version);
    const op = { ...this.#setOp(key, value, options), ifVersion: version };
    const result = await this.#write('compareAndSet', op, options);
    return 'done' in result ? result.done : undefined;
  }

  #setOp(key: Key, value: V, options: SetOptions): WriteOp {
    checkObject('the options', options, 'an object');
    const { ttlMs } = options;
    checkTtl(ttlMs);
    const bytes = Buffer.from(encoded(this.#codec, value));
    return { kind: 'set', key: ownKeyBytes(key), value: bytes, ...(ttlMs !== undefined && { ttlMs }) };
  }

  /** Asks the owner to remove an entry. */
  async delete(key: Key, options?: WaitOptions): Promise<boolean> {
    const result = await this.#write('delete', { kind: 'delete', key: ownKeyBytes(key) }, options ?? {});
    return 'done' in result && result.done !== 0;
  }

  async #write(call: string, op: WriteOp, options: SetOptions): Promise<Exclude<WriteResult, { error: string }>> {
    const deadline = WaitDeadline.of(call, options, this.#clock, SET_OPTIONS);
    const result = await waitFor(deadline, (cancellation) => this.#add(op, cancellation));
    if ('error' in result) throw new RoceError(result.error as RoceErrorCode, result.message);
    return result;
  }

  /** A write is sent once: after the end of a connection it is unknown whether it was executed. */
  async #add(op: WriteOp, cancellation: CancellationState): Promise<WriteResult> {
    const session = this.#link.present ?? (await this.#link.session());
    if (cancellation.error !== undefined) throw cancellation.error;
    checkWrite(op, session.geometry);
    return this.#noticingLoss(session, session.writes.add(op));
  }

  async #noticingLoss<T>(session: KvSession, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.#link.lose(session, error);
      throw error;
    }
  }

  /** All entries, in pages that the owner makes. Rejects when the connection ends: another owner has another table. */
  async *entries(options: ScanOptions = {}): AsyncGenerator<[Buffer, KvEntry<V>], void, undefined> {
    const deadline = WaitDeadline.of('entries', options, this.#clock, SCAN_OPTIONS);
    const { prefix: start = '', ...wait } = options;
    const prefix = keyBytes(start);
    const session = this.#link.present ?? (await waitForEvent(deadline, this.#link.session()));
    for (let cursor = 0; cursor >= 0; ) {
      const page = session.methods.scan({ cursor, prefix }, wait);
      const { entries, next } = await this.#noticingLoss(session, page);
      for (const { key, value, version } of entries)
        yield [Buffer.from(key), { value: decoded(this.#codec, Buffer.from(value)), version }];
      cursor = next;
    }
  }

  /**
   * Changes of all keys that begin with `prefix`, from the time at which the owner receives the first `next()`. After a
   * reconnect `lost` comes first: from then on no change is missing.
   */
  async *watch(prefix: Key = '', options: WaitOptions = {}): AsyncGenerator<KvEvent, void, undefined> {
    const deadline = WaitDeadline.of('watch', options, this.#clock);
    const start = Buffer.from(keyBytes(prefix));
    for (let isResumed = false; ; isResumed = true) {
      const session = this.#link.present ?? (await waitForEvent(deadline, this.#link.session()));
      try {
        for await (const { kind, key, version } of session.methods.watch({ prefix: start, isResumed }, options))
          yield { kind, key: Buffer.from(key), version };
        if (!this.#link.leave(session)) return;
      } catch (error) {
        if (!this.#link.lose(session, error)) throw error;
      }
    }
  }

  /** Ends the connection, and attempts to get another one. */
  close(): Promise<void> {
    return this.#link.close();
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function checkWrite({ key, value }: WriteOp, { keyBytesMax, valueBytesMax }: Geometry): void {
  checkKeyBytes(Buffer.from(key), keyBytesMax);
  if (value === undefined || value.length <= valueBytesMax) return;
  const text = `a value of ${value.length} bytes is longer than the ${valueBytesMax} that the store takes`;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, 'let the owner raise `valueBytesMax`');
}
