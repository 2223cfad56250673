/** An owner and its readers in virtual time: two hosts on one bad link, a connection for each reader. */

import { Readable } from 'node:stream';
import type { Connection } from '../../../src/cm/connection.js';
import { RoceError } from '../../../src/core/errors.js';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import { connectPlayers } from '../../../test/support/connections.js';
import { createPair, type Pair } from '../../../test/support/pair.js';
import { pass, until } from '../../../test/support/virtual-time.js';
import { KvClient } from '../src/client.js';
import { codecOf } from '../src/codec.js';
import { layoutOf } from '../src/geometry.js';
import { geometryFor, type StoreSizes } from '../src/geometry-for.js';
import { KvOwner } from '../src/owner.js';
import { decodeSnapshot } from '../src/snapshot.js';
import { restore, SnapshotKeeper, type SnapshotPlace } from '../src/snapshot-keeper.js';
import { KvStore } from '../src/store.js';

const OPTIONS = { messageBytesMax: 8192, receiveDepth: 16 } as const;

export interface WorldOptions {
  readonly seed: number;
  readonly readers: number;
  /** Fault rules; the readers are on host `a`, the owner on `b`. */
  readonly faults?: string;
  readonly sizes?: StoreSizes;
  /** Small packets at a low rate: an answer takes so long that writes come in between. */
  readonly mtu?: number;
  readonly rateBps?: number;
  /** The owner writes snapshots, to a disk that takes its time. Default: none. */
  readonly snapshotEveryMs?: number;
}

/** So late a reader hears of its owner's death. */
const NEWS_NS_MAX = 2e6;
/** So long a snapshot may take to become durable. */
const DISK_NS_MAX = 2e5;
const CODEC = codecOf<string>('string');

export class World {
  readonly pair: Pair;
  readonly readers: KvClient<string>[] = [];
  readonly random: RandomSource;
  readonly #sizes: StoreSizes;
  readonly #seeds: SeededRandom;
  readonly #ofOwner = new Set<Connection>();
  readonly #snapshotEveryMs: number | undefined;
  /** The disk. */
  #snapshot: readonly Buffer[] | undefined;
  #keeper: SnapshotKeeper | undefined;
  /** Deaths of owners. */
  #lives = 0;
  /** Called with what each snapshot has, at the moment that it shows. */
  onSnapshot: (values: Promise<ReadonlyMap<string, string>>) => void = () => {};
  #store: KvStore | undefined;
  #owner: KvOwner<string> | undefined;

  private constructor(pair: Pair, { seed, sizes = {}, snapshotEveryMs }: WorldOptions) {
    this.pair = pair;
    this.#sizes = sizes;
    this.#snapshotEveryMs = snapshotEveryMs;
    this.#seeds = new SeededRandom(seed);
    this.random = this.#seeds.stream('world');
  }

  get store(): KvStore {
    return this.#store!;
  }

  get owner(): KvOwner<string> {
    return this.#owner!;
  }

  async #begin(life: string): Promise<void> {
    const last = this.#snapshot && (await decodeSnapshot(Readable.from(this.#snapshot)));
    const geometry = geometryFor(this.#sizes, last?.seed ?? this.#seeds.stream(`hash${life}`).u32());
    const { clock } = this.pair.b.device;
    const store = new KvStore({
      region: this.pair.b.device.allocate(layoutOf(geometry).end),
      geometry,
      eviction: 'none',
      nowNs: () => clock.nowNs(),
      random: this.#seeds.stream(`store${life}`),
    });
    if (this.#snapshotEveryMs !== undefined) {
      const parts = { place: this.#disk(), everyMs: this.#snapshotEveryMs, clock, wallMs: () => clock.nowNs() / 1e6 };
      if (last !== undefined) await restore(store, last, parts);
      this.#keeper = new SnapshotKeeper(store, parts);
      this.#keeper.start();
    }
    this.#store = store;
    this.#owner = new KvOwner(store, CODEC, clock);
  }

  /** The disk, as one life of the owner writes it: what is not durable when it dies never will be. */
  #disk(): SnapshotPlace {
    const life = this.#lives;
    return {
      save: async (pieces) => {
        if (this.#lives !== life) return; // The keeper of a dead owner, which is only told to stop.
        this.onSnapshot(valuesOf(pieces));
        await this.sleep(randomInt(this.random, 0, DISK_NS_MAX));
        if (this.#lives === life) this.#snapshot = pieces;
      },
    };
  }

  /** The values that a new owner would begin with. */
  snapshotValues(): Promise<ReadonlyMap<string, string>> {
    return valuesOf(this.#snapshot);
  }

  static async create(options: WorldOptions): Promise<World> {
    const { seed, readers, faults, mtu = 1024, rateBps = 10e9 } = options;
    const pair = await createPair({ seed, memoryBytes: 4096, rateBps, ...(faults !== undefined && { faults }) });
    const world = new World(pair, options);
    await world.#begin('');
    for (let k = 0; k < readers; k++) await world.join(mtu);
    return world;
  }

  /** The owner dies without a word. After `downNs` another one begins, with the last snapshot if there is one. */
  async restart(life: number, downNs: number): Promise<void> {
    const dead = this.owner;
    this.#owner = undefined;
    for (const connection of this.#ofOwner) void connection.close();
    this.#ofOwner.clear();
    void dead.close();
    this.#lives++;
    void this.#keeper?.close();
    await this.sleep(downNs);
    await this.#begin(String(life));
  }

  /** One more reader. */
  async join(mtu = 1024, reconnectMs = 1000): Promise<KvClient<string>> {
    const connect = () => this.#connect(mtu);
    const begin = async () => KvClient.over(await connect(), CODEC, { connect, forMs: reconnectMs });
    // A burst may end a connection before its reader has begun, now and then two in a row.
    const reader = await this.until(begin().catch(begin).catch(begin));
    this.readers.push(reader);
    return reader;
  }

  /** A connection to the owner, if there is one. */
  async #connect(mtu: number): Promise<Connection> {
    if (this.#owner === undefined) throw new RoceError('ERR_ROCE_CONNECT', 'there is no owner');
    // The reader hears of the owner's end some time later.
    const newsNs = () => randomInt(this.random, 0, NEWS_NS_MAX);
    const [mine, theirs] = await connectPlayers(this.pair, { random: this.random, mtu, newsNs, ...OPTIONS });
    if (this.#owner === undefined) {
      void theirs.close();
      void mine.close();
      throw new RoceError('ERR_ROCE_CONNECT', 'the owner has gone');
    }
    this.#ofOwner.add(theirs);
    this.#owner.add(theirs).catch(() => {});
    return mine;
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.pair.events, outcome);
  }

  pass(ns: number): Promise<void> {
    return pass(this.pair.events, ns);
  }

  /** Resolves after this much virtual time. */
  sleep(ns: number): Promise<void> {
    return new Promise((resolve) => this.pair.events.after(ns, resolve));
  }
}

/** Values by key; none where there is no snapshot. */
async function valuesOf(pieces: readonly Buffer[] | undefined): Promise<ReadonlyMap<string, string>> {
  const values = new Map<string, string>();
  if (pieces === undefined) return values;
  const { records } = await decodeSnapshot(Readable.from(pieces));
  for await (const { key, value } of records) values.set(key.toString(), value.toString());
  return values;
}
