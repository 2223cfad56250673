/** An owner and its readers in virtual time: two hosts on one bad link, a connection for each reader. */

import type { Connection } from '../../src/cm/connection.js';
import { RoceError } from '../../src/core/errors.js';
import { type RandomSource, randomInt, SeededRandom } from '../../src/core/random.js';
import { KvClient } from '../../src/kv/client.js';
import { codecOf } from '../../src/kv/codec.js';
import { placesOf } from '../../src/kv/geometry.js';
import { geometryFor, type StoreSizes } from '../../src/kv/geometry-for.js';
import { KvOwner } from '../../src/kv/owner.js';
import { KvStore } from '../../src/kv/store.js';
import { connectPlayers } from '../support/connections.js';
import { createPair, type Pair } from '../support/pair.js';
import { pass, until } from '../support/virtual-time.js';

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
}

/** So late a reader hears of its owner's death. */
const NEWS_NS_MAX = 2e6;
const CODEC = codecOf<string>('string');

export class World {
  readonly pair: Pair;
  readonly readers: KvClient<string>[] = [];
  readonly random: RandomSource;
  readonly #sizes: StoreSizes;
  readonly #seeds: SeededRandom;
  readonly #ofOwner = new Set<Connection>();
  #store: KvStore | undefined;
  #owner: KvOwner<string> | undefined;

  private constructor(pair: Pair, seed: number, sizes: StoreSizes) {
    this.pair = pair;
    this.#sizes = sizes;
    this.#seeds = new SeededRandom(seed);
    this.random = this.#seeds.stream('world');
    this.#begin('');
  }

  get store(): KvStore {
    return this.#store!;
  }

  get owner(): KvOwner<string> {
    return this.#owner!;
  }

  #begin(life: string): void {
    const geometry = geometryFor(this.#sizes, this.#seeds.stream(`hash${life}`).u32());
    const { device } = this.pair.b;
    this.#store = new KvStore({
      region: device.allocate(placesOf(geometry).end),
      geometry,
      eviction: 'none',
      nowNs: () => device.clock.nowNs(),
      random: this.#seeds.stream(`store${life}`),
    });
    this.#owner = new KvOwner(this.#store, CODEC, device.clock);
  }

  static async create({ seed, readers, faults, sizes = {}, mtu = 1024, rateBps = 10e9 }: WorldOptions): Promise<World> {
    const pair = await createPair({ seed, memoryBytes: 4096, rateBps, ...(faults !== undefined && { faults }) });
    const world = new World(pair, seed, sizes);
    for (let k = 0; k < readers; k++) await world.join(mtu);
    return world;
  }

  /** The owner dies without a word. After `downNs` another one begins with nothing. */
  async restart(life: number, downNs: number): Promise<void> {
    const dead = this.owner;
    this.#owner = undefined;
    for (const connection of this.#ofOwner) void connection.close();
    this.#ofOwner.clear();
    void dead.close();
    await this.sleep(downNs);
    this.#begin(String(life));
  }

  /** One more reader. */
  async join(mtu = 1024, reconnectMs = 1000): Promise<KvClient<string>> {
    const connect = () => this.#connect(mtu);
    const begin = async () => KvClient.over(await connect(), CODEC, { connect, forMs: reconnectMs });
    // A burst may end a connection before its reader has begun.
    const reader = await this.until(begin().catch(begin));
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
