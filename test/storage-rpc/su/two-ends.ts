/** Two ends of an sU-RDMA connection on a simulated link. */

import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import { BufferPool } from '../../../src/storage-rpc/pool/buffer-pool.js';
import { SuConnection } from '../../../src/storage-rpc/su/su-connection.js';
import { SU_QP, type SuOptions, type SuPools } from '../../../src/storage-rpc/su/su-parts.js';
import { Access } from '../../../src/verbs/access.js';
import type { MemoryRegion } from '../../../src/verbs/memory-region.js';
import { createPair, type Pair, type PairOptions, type Player } from '../../support/pair.js';
import { pass, until } from '../../support/virtual-time.js';

export interface SuPairOptions extends PairOptions {
  client?: SuOptions;
  server?: SuOptions;
  /** Of each pool of each side. */
  poolBytesMax?: number;
  /** Counts allocations of slabs from 1 and throws for those that fail. */
  onAllocate?: (n: number) => void;
}

export interface SuEnd {
  readonly player: Player;
  readonly connection: SuConnection;
  readonly pools: SuPools;
  /** Everything received and released at once, unless a test has taken `onChunk` over. */
  readonly received: Buffer[];
  failure: Error | undefined;
  ended: boolean;
}

export class TwoEnds {
  readonly pair: Pair;
  readonly client: SuEnd;
  readonly server: SuEnd;

  private constructor(pair: Pair, client: SuEnd, server: SuEnd) {
    this.pair = pair;
    this.client = client;
    this.server = server;
  }

  static async create(options: SuPairOptions = {}): Promise<TwoEnds> {
    const pair = await createPair({ mtu: 4096, memoryBytes: 4096, ...options, qp: SU_QP });
    const clock = virtualClock(pair.events);
    let allocations = 0;
    const pool = (player: Player, access: number): BufferPool<MemoryRegion> =>
      new BufferPool({
        allocate: async (bytes) => {
          options.onAllocate?.(++allocations);
          return player.pd.regMr(bytes, access);
        },
        clock,
        ...(options.poolBytesMax !== undefined && { bytesMax: options.poolBytesMax }),
      });
    const end = async (player: Player, role: 'client' | 'server', own: SuOptions = {}): Promise<SuEnd> => {
      const pools = {
        local: pool(player, Access.LOCAL_WRITE),
        exposed: pool(player, Access.LOCAL_WRITE | Access.REMOTE_READ),
      };
      const { pd, qp, cq: sendCq, recvCq } = player;
      const connection = await SuConnection.over({ pd, qp, sendCq, recvCq, clock, pools }, role, own);
      const result: SuEnd = { player, connection, pools, received: [], failure: undefined, ended: false };
      connection.onChunk = ({ bytes, release }) => {
        result.received.push(Buffer.from(bytes));
        release();
      };
      connection.onFailure = (error) => {
        result.failure = error;
      };
      connection.onEnd = () => {
        result.ended = true;
      };
      return result;
    };
    const ends = new TwoEnds(
      pair,
      await end(pair.a, 'client', options.client),
      await end(pair.b, 'server', options.server),
    );
    ends.client.connection.start();
    ends.server.connection.start();
    return ends;
  }

  static async connected(options: SuPairOptions = {}): Promise<TwoEnds> {
    const ends = await TwoEnds.create(options);
    await ends.until(Promise.all([ends.client.connection.ready, ends.server.connection.ready]));
    return ends;
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.pair.events, outcome);
  }

  pass(ns: number): Promise<void> {
    return pass(this.pair.events, ns);
  }

  sleep(ns: number): Promise<void> {
    return new Promise((resolve) => this.pair.events.after(ns, resolve));
  }
}
