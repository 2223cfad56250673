/** An owner and its readers in virtual time: two hosts on one bad link, a connection for each reader. */

import { Connection } from '../../src/cm/connection.js';
import { makeParts, postReceives } from '../../src/cm/connection-parts.js';
import type { Agreement } from '../../src/cm/exchange.js';
import type { PeerPresence } from '../../src/cm/peer-presence.js';
import { type RandomSource, randomInt, SeededRandom } from '../../src/core/random.js';
import { KvClient } from '../../src/kv/client.js';
import { codecOf } from '../../src/kv/codec.js';
import { placesOf } from '../../src/kv/geometry.js';
import { geometryFor, type StoreSizes } from '../../src/kv/geometry-for.js';
import { KvOwner } from '../../src/kv/owner.js';
import { KvStore } from '../../src/kv/store.js';
import { connectQp, createPair, type Pair, type Player } from '../support/pair.js';
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

export class World {
  readonly pair: Pair;
  readonly store: KvStore;
  readonly owner: KvOwner<string>;
  readonly readers: KvClient<string>[] = [];
  readonly random: RandomSource;

  private constructor(pair: Pair, store: KvStore, random: RandomSource) {
    this.pair = pair;
    this.store = store;
    this.random = random;
    this.owner = new KvOwner(store, codecOf<string>('string'), pair.b.device.clock);
  }

  static async create({ seed, readers, faults, sizes = {}, mtu = 1024, rateBps = 10e9 }: WorldOptions): Promise<World> {
    const pair = await createPair({ seed, memoryBytes: 4096, rateBps, ...(faults !== undefined && { faults }) });
    const random = new SeededRandom(seed);
    const geometry = geometryFor(sizes, random.stream('hash').u32());
    const { device } = pair.b;
    const store = new KvStore({
      region: device.allocate(placesOf(geometry).end),
      geometry,
      eviction: 'none',
      nowNs: () => device.clock.nowNs(),
      random: random.stream('store'),
    });
    const world = new World(pair, store, random.stream('world'));
    for (let k = 0; k < readers; k++) await world.join(mtu);
    return world;
  }

  /** One more reader. */
  async join(mtu = 1024): Promise<KvClient<string>> {
    const { a, b } = this.pair;
    const end = async ({ device }: Player) => {
      const [parts] = await makeParts(device, OPTIONS);
      return { parts, device, psn: randomInt(this.random, 0, 0xffffff) };
    };
    const [here, there] = [await end(a), await end(b)];
    let leave = () => {};
    const ended = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const presence: PeerPresence = { isOpen: true, ended, close: async () => leave() };
    const over = async (own: typeof here, peer: typeof here) => {
      const { address } = peer.device.attributes;
      const recovery = 'go-back-n' as const;
      await connectQp(
        own.parts.qp,
        { address, qpn: peer.parts.qp.qpn, psn: peer.psn },
        { psn: own.psn, mtu, recovery },
      );
      postReceives(own.parts);
      const agreement: Agreement = {
        peer: address,
        remoteQpn: peer.parts.qp.qpn,
        mtu,
        recovery,
        sharesMemory: false,
        region: undefined,
        messageBytesMax: OPTIONS.messageBytesMax,
        purpose: {},
        destination: {},
      };
      return Connection.over(own.parts, presence, agreement);
    };
    const [mine, theirs] = [await over(here, there), await over(there, here)];
    void this.owner.add(theirs);
    const reader = await this.until(KvClient.over(mine, codecOf<string>('string')));
    this.readers.push(reader);
    return reader;
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
