/** A reader: GETs by READs of the owner's memory, everything else by calls. */

import type { Connection } from '../cm/connection.js';
import { RoceError, type RoceErrorCode } from '../core/errors.js';
import { NS_PER_MS } from '../core/units.js';
import { Patience, WAIT_OPTIONS, type WaitOptions, waitFor } from '../core/wait.js';
import { connectRpc, type RpcClient } from '../rpc/index.js';
import { Batch } from './batch.js';
import { type Codec, decoded, encoded } from './codec.js';
import { bucketBytes, type Geometry, HEADER_BYTES, readHeader, UNIT_BYTES } from './geometry.js';
import {
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
import { KV_SERVICE, type ToldEntry, type WriteOp, type WriteResult } from './protocol.js';
import { recordBytes } from './record.js';
import { ConnectionMemory } from './remote-memory.js';
import { type LookupCounters, RemoteTable } from './remote-table.js';
import { unitsOf } from './slot.js';
import { checkKeyBytes } from './store.js';
import { UsedKeys } from './used-keys.js';

/** Lookups by READ before the owner is asked. */
const LOOKUPS_MAX = 3;

const SET_OPTIONS = { ...WAIT_OPTIONS, ttlMs: true } as const;
const SCAN_OPTIONS = { ...WAIT_OPTIONS, prefix: true } as const;

/** What a reader has done. */
export interface ClientCounters extends LookupCounters {
  /** GETs for which the owner was asked, because READs met changes. */
  asked: number;
}

/** What a reader has found out about its owner. */
interface Opened {
  readonly geometry: Geometry;
  readonly table: RemoteTable;
  /** Added to this side's clock it gives the owner's, or up to a round trip less; milliseconds. */
  readonly clockOffsetMs: number;
}

/** The entries of an owner, as a reader sees them; made by `openKv`. */
export class KvClient<V> implements Kv<V> {
  readonly #connection: Connection;
  readonly #rpc: RpcClient<typeof KV_SERVICE>;
  readonly #codec: Codec<V>;
  readonly #opened: Opened;
  readonly #writes: Batch;
  readonly #used: UsedKeys;
  #asked = 0;

  private constructor(connection: Connection, rpc: RpcClient<typeof KV_SERVICE>, codec: Codec<V>, opened: Opened) {
    this.#connection = connection;
    this.#rpc = rpc;
    this.#codec = codec;
    this.#opened = opened;
    this.#writes = new Batch((ops) => rpc.methods.write(ops));
    this.#used = new UsedKeys((keys) => rpc.methods.touch({ keys }));
  }

  /** Takes over a connection to an owner. Rejects with ERR_ROCE_MISMATCH if the peer is none, or has another layout. @internal */
  static async over<V>(connection: Connection, codec: Codec<V>): Promise<KvClient<V>> {
    const { clock } = connection.device;
    const rpc = connectRpc(connection, KV_SERVICE);
    try {
      const place = await rpc.methods.open({});
      // At most what is true: no reader may miss an entry that the owner still has.
      const clockOffsetMs = place.nowMs - clock.nowNs() / NS_PER_MS;
      const bytes = connection.device.scratch.take(HEADER_BYTES);
      if (place.length >= HEADER_BYTES) await connection.readClaimed(bytes, BigInt(place.addr), place.rkey);
      const geometry = readHeader(Buffer.from(bytes), place.length);
      connection.device.scratch.give(bytes);
      const longest = unitsOf(recordBytes(geometry.keyBytesMax, geometry.valueBytesMax)) * UNIT_BYTES;
      const memory = await ConnectionMemory.open(connection, place, Math.max(2 * bucketBytes(geometry), longest));
      return new KvClient(connection, rpc, codec, {
        geometry,
        table: new RemoteTable(memory, geometry, clock),
        clockOffsetMs,
      });
    } catch (error) {
      await rpc.close();
      throw error;
    }
  }

  /** A copy of the counters. */
  counters(): ClientCounters {
    return { ...this.#opened.table.counters, asked: this.#asked };
  }

  /** The value of a key. One or two READs; the owner's program takes no part. */
  async get(key: Key, options?: WaitOptions): Promise<V | undefined> {
    return (await this.getEntry(key, options))?.value;
  }

  /** The same with its version. */
  async getEntry(key: Key, options?: WaitOptions): Promise<KvEntry<V> | undefined> {
    const found = await this.#get('getEntry', key, options);
    return found && { value: decoded(this.#codec, found.value), version: found.version };
  }

  /** The values of several keys, read side by side. */
  getMany(keys: readonly Key[], options?: WaitOptions): Promise<(V | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key, options)));
  }

  /** Whether there is such an entry. */
  async has(key: Key, options?: WaitOptions): Promise<boolean> {
    return (await this.#get('has', key, options)) !== undefined;
  }

  #get(
    call: string,
    key: Key,
    options: WaitOptions | undefined,
  ): Promise<{ readonly value: Buffer; readonly version: number } | undefined> {
    const patience = Patience.of(call, options, WAIT_OPTIONS, this.#connection.device.clock);
    const name = this.#name(key);
    this.#opened.table.counters.gets++;
    return waitFor(patience, () => this.#find(name));
  }

  async #find(key: Buffer): Promise<{ readonly value: Buffer; readonly version: number } | undefined> {
    const { table } = this.#opened;
    for (let lookup = 0; lookup < LOOKUPS_MAX; lookup++) {
      const found = await table.lookUp(key);
      if (found === 'unclear') continue;
      if (found === undefined || this.#isOver(found.expiresMs)) return undefined;
      this.#used.note(key);
      return found;
    }
    this.#asked++;
    const { entry } = await this.#rpc.methods.read({ key });
    return entry && bytesOf(entry);
  }

  /** By the owner's clock, as this side knows it. */
  #isOver(expiresMs: number): boolean {
    if (expiresMs === 0) return false;
    return expiresMs <= this.#connection.device.clock.nowNs() / NS_PER_MS + this.#opened.clockOffsetMs;
  }

  /** The caller may change its bytes meanwhile. */
  #name(key: Key): Buffer {
    const name = Buffer.from(keyBytes(key));
    checkKeyBytes(name, this.#opened.geometry.keyBytesMax);
    return name;
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

  #setOp(key: Key, value: V, { ttlMs }: SetOptions): WriteOp {
    checkTtl(ttlMs);
    const bytes = encoded(this.#codec, value);
    const { valueBytesMax } = this.#opened.geometry;
    if (bytes.length > valueBytesMax) {
      const text = `a value of ${bytes.length} bytes is longer than the ${valueBytesMax} that the store takes`;
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, 'let the owner raise `valueBytesMax`');
    }
    return { kind: 'set', key: this.#name(key), value: Buffer.from(bytes), ...(ttlMs !== undefined && { ttlMs }) };
  }

  /** Asks the owner to remove an entry. */
  async delete(key: Key, options?: WaitOptions): Promise<boolean> {
    const result = await this.#write('delete', { kind: 'delete', key: this.#name(key) }, options ?? {});
    return 'done' in result && result.done !== 0;
  }

  async #write(call: string, op: WriteOp, options: SetOptions): Promise<Exclude<WriteResult, { error: string }>> {
    const patience = Patience.of(call, options, SET_OPTIONS, this.#connection.device.clock);
    const result = await waitFor(patience, () => this.#writes.add(op));
    if ('error' in result) throw new RoceError(result.error as RoceErrorCode, result.message);
    return result;
  }

  /** All entries, in pages that the owner makes. */
  async *entries(options: ScanOptions = {}): AsyncGenerator<[Buffer, KvEntry<V>], void, undefined> {
    Patience.of('entries', options, SCAN_OPTIONS, this.#connection.device.clock);
    const { prefix: start = '', ...wait } = options;
    const prefix = keyBytes(start);
    for (let cursor = 0; cursor >= 0; ) {
      const { entries, next } = await this.#rpc.methods.scan({ cursor, prefix }, wait);
      for (const { key, value, version } of entries)
        yield [Buffer.from(key), { value: decoded(this.#codec, Buffer.from(value)), version }];
      cursor = next;
    }
  }

  /** Changes of all keys that begin with `prefix`, from the time at which the owner hears of the first `next()`. */
  async *watch(prefix: Key = '', options: WaitOptions = {}): AsyncGenerator<KvEvent, void, undefined> {
    for await (const { kind, key, version } of this.#rpc.methods.watch({ prefix: keyBytes(prefix) }, options))
      yield { kind, key: Buffer.from(key), version };
  }

  /** Ends the connection. */
  close(): Promise<void> {
    return this.#rpc.close();
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function bytesOf({ value, version }: ToldEntry): { readonly value: Buffer; readonly version: number } {
  return { value: Buffer.from(value), version };
}
