import { connectRpc, type RpcClient } from '@rocev2/rpc';
import type { Connection } from 'rocev2/internal/cm';
import { type Clock, NS_PER_MS } from 'rocev2/internal/core';
import { Batch } from './batch.js';
import { bucketBytes, type Geometry, HEADER_BYTES, readHeader, UNIT_BYTES } from './geometry.js';
import { KV_SERVICE, type StoreRegion } from './protocol.js';
import { recordBytes } from './record.js';
import { ConnectionMemory } from './remote-memory.js';
import { type LookupCounters, RemoteTable } from './remote-table.js';
import { unitsOf } from './slot.js';
import { UsedKeys } from './used-keys.js';

/** Lookups by READ before the owner is called. */
const LOOKUPS_MAX = 3;

/** Counters of a reader. */
export interface ClientCounters extends LookupCounters {
  /** GETs for which the owner was asked, because READs met changes. */
  asked: number;
  /** Connections after the first one. */
  reconnects: number;
}

export interface FoundValue {
  readonly value: Buffer;
  readonly version: number;
}

interface Opened {
  readonly geometry: Geometry;
  readonly table: RemoteTable;
  /** Added to this side's clock it gives the owner's, or up to a round trip less; milliseconds. */
  readonly clockOffsetMs: number;
}

export class KvSession {
  readonly geometry: Geometry;
  readonly methods: RpcClient<typeof KV_SERVICE>['methods'];
  readonly writes: Batch;
  readonly #connection: Connection;
  readonly #rpc: RpcClient<typeof KV_SERVICE>;
  readonly #opened: Opened;
  readonly #clock: Clock;
  readonly #counters: ClientCounters;
  readonly #used: UsedKeys;

  private constructor(
    connection: Connection,
    rpc: RpcClient<typeof KV_SERVICE>,
    opened: Opened,
    counters: ClientCounters,
  ) {
    this.#connection = connection;
    this.#rpc = rpc;
    this.#opened = opened;
    this.#clock = connection.device.clock;
    this.#counters = counters;
    this.geometry = opened.geometry;
    this.methods = rpc.methods;
    this.writes = new Batch((ops) => rpc.methods.write(ops));
    this.#used = new UsedKeys((keys) => rpc.methods.touch({ keys }));
  }

  static async over(connection: Connection, counters: ClientCounters): Promise<KvSession> {
    const { clock } = connection.device;
    const rpc = connectRpc(connection, KV_SERVICE);
    try {
      const place = await rpc.methods.open({});
      // At most what is true: no reader may miss an entry that the owner still has.
      const clockOffsetMs = place.nowMs - clock.nowNs() / NS_PER_MS;
      const geometry = await geometryAt(connection, place);
      const longest = unitsOf(recordBytes(geometry.keyBytesMax, geometry.valueBytesMax)) * UNIT_BYTES;
      const memory = await ConnectionMemory.open(connection, place, Math.max(2 * bucketBytes(geometry), longest));
      const table = new RemoteTable(memory, geometry, clock, counters);
      return new KvSession(connection, rpc, { geometry, table, clockOffsetMs }, counters);
    } catch (error) {
      await rpc.close();
      throw error;
    }
  }

  get isOver(): boolean {
    return this.#connection.isClosed;
  }

  async find(key: Buffer): Promise<FoundValue | undefined> {
    for (let lookup = 0; lookup < LOOKUPS_MAX; lookup++) {
      const found = await this.#opened.table.lookUp(key);
      if (found === 'unclear') continue;
      if (found === undefined || this.#hasExpired(found.expiresMs)) return undefined;
      this.#used.note(key);
      return found;
    }
    this.#counters.asked++;
    const { entry } = await this.methods.read({ key });
    return entry && { value: Buffer.from(entry.value), version: entry.version };
  }

  #hasExpired(expiresMs: number): boolean {
    return expiresMs !== 0 && expiresMs <= this.#clock.nowNs() / NS_PER_MS + this.#opened.clockOffsetMs;
  }

  close(): Promise<void> {
    return this.#rpc.close();
  }
}

async function geometryAt(connection: Connection, { addr, rkey, length }: StoreRegion): Promise<Geometry> {
  const { scratch } = connection.device;
  const bytes = scratch.take(HEADER_BYTES);
  if (length >= HEADER_BYTES) await connection.readClaimed(bytes, BigInt(addr), rkey);
  const header = Buffer.from(bytes);
  scratch.give(bytes);
  return readHeader(header, length);
}
