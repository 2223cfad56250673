/** A host with streams and a client on a simulated link, with RDMA and TCP between them, in virtual time. */

import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import type { Clock } from '../../../src/core/clock.js';
import { SeededRandom } from '../../../src/core/random.js';
import { BufferPool } from '../../../src/storage-rpc/pool/buffer-pool.js';
import { SuConnection } from '../../../src/storage-rpc/su/su-connection.js';
import { SU_QP, type SuPools } from '../../../src/storage-rpc/su/su-parts.js';
import { StreamAcceptor, type StreamAcceptorOptions } from '../../../src/storage-rpc/su-stream/stream-acceptor.js';
import { StreamHost, type StreamHostOptions } from '../../../src/storage-rpc/su-stream/stream-host.js';
import { StreamLink } from '../../../src/storage-rpc/su-stream/stream-link.js';
import type { SuStream } from '../../../src/storage-rpc/su-stream/su-stream.js';
import { Access } from '../../../src/verbs/access.js';
import { connectQp, createPair, type Pair, type PairOptions, type Player } from '../../support/pair.js';
import { pass, until } from '../../support/virtual-time.js';
import { createPipe } from '../sk/pipe.js';

const MTU = 4096;

/** What a program at one end has seen. */
export interface Seen {
  readonly stream: SuStream;
  readonly got: Buffer[];
  hasEnded: boolean;
  failure: Error | undefined;
}

export function watch(stream: SuStream): Seen {
  const seen: Seen = { stream, got: [], hasEnded: false, failure: undefined };
  stream.onChunk = ({ bytes, release }) => {
    seen.got.push(Buffer.from(bytes));
    release();
  };
  stream.onEnd = () => {
    seen.hasEnded = true;
  };
  stream.onFailure = (error) => {
    seen.failure = error;
  };
  return seen;
}

export class StreamRig {
  readonly pair: Pair;
  readonly clock: Clock;
  readonly random: SeededRandom;
  acceptor: StreamAcceptor;
  /** Streams that the server has been given. */
  readonly served: Seen[] = [];
  /** Both ends of the newest connection. */
  newest: { client: StreamLink; server: StreamLink } | undefined;
  /** Every connection attempt of this transport fails while it is in here. */
  readonly down = new Set<'rdma' | 'tcp'>();
  /** Sees both ends of a connection before anything is sent. */
  onDial: (ends: { client: StreamLink; server: StreamLink }) => void = () => {};
  readonly #options: StreamAcceptorOptions;
  readonly #pools: readonly SuPools[];
  #psn = 0x100;

  private constructor(pair: Pair, seed: number, options: StreamAcceptorOptions) {
    this.pair = pair;
    this.clock = virtualClock(pair.events);
    this.random = new SeededRandom(seed);
    this.#options = options;
    this.#pools = [pair.a, pair.b].map(({ pd }) => {
      const pool = (access: number) =>
        new BufferPool({ allocate: (bytes) => pd.regMr(bytes, access), clock: this.clock });
      return { local: pool(Access.LOCAL_WRITE), exposed: pool(Access.LOCAL_WRITE | Access.REMOTE_READ) };
    });
    this.acceptor = this.boot();
  }

  static async create(options: PairOptions & StreamAcceptorOptions = {}): Promise<StreamRig> {
    const { windowBytes, keepNs, ...pairOptions } = options;
    const pair = await createPair({ mtu: MTU, memoryBytes: 4096, ...pairOptions });
    const terms = { ...(windowBytes !== undefined && { windowBytes }), ...(keepNs !== undefined && { keepNs }) };
    return new StreamRig(pair, options.seed ?? 1, terms);
  }

  /** A server that knows no stream. */
  boot(): StreamAcceptor {
    this.acceptor = new StreamAcceptor(this.clock, (stream) => this.served.push(watch(stream)), this.#options);
    return this.acceptor;
  }

  host(options: Partial<StreamHostOptions> = {}): StreamHost {
    return new StreamHost({
      clock: this.clock,
      random: this.random.stream('host'),
      dial: { rdma: () => this.dialRdma(), tcp: () => this.dialTcp() },
      path: { holdDownNs: 50e6 },
      ...options,
    });
  }

  async dialRdma(): Promise<StreamLink> {
    if (this.down.has('rdma')) throw new Error('RDMA is down');
    const { a, b } = this.pair;
    const parts = async (player: Player, pools: SuPools) => {
      const sendCq = await player.device.createCq(SU_QP.maxSendWr);
      const recvCq = await player.device.createCq(SU_QP.maxRecvWr);
      const qp = await player.pd.createQp({ sendCq, recvCq, ...SU_QP });
      return { pd: player.pd, qp, sendCq, recvCq, clock: this.clock, pools };
    };
    const [clientParts, serverParts] = [await parts(a, this.#pools[0]), await parts(b, this.#pools[1])];
    const psn = { a: this.#psn++, b: this.#psn++ };
    const own = { mtu: MTU, recovery: 'go-back-n' } as const;
    const toB = { address: b.host.address, qpn: serverParts.qp.qpn, psn: psn.b };
    const toA = { address: a.host.address, qpn: clientParts.qp.qpn, psn: psn.a };
    await connectQp(clientParts.qp, toB, { ...own, psn: psn.a });
    await connectQp(serverParts.qp, toA, { ...own, psn: psn.b });
    const server = await SuConnection.over(serverParts, 'server');
    const client = await SuConnection.over(clientParts, 'client');
    const served = StreamLink.overRdma(server);
    this.acceptor.accept(served);
    const link = StreamLink.overRdma(client);
    this.newest = { client: link, server: served };
    this.onDial(this.newest);
    server.start();
    client.start();
    try {
      await client.ready;
    } catch (error) {
      await client.close();
      throw error;
    }
    return link;
  }

  async dialTcp(): Promise<StreamLink> {
    if (this.down.has('tcp')) throw new Error('TCP is down');
    const [client, server] = createPipe(this.pair.events, 10_000);
    const served = StreamLink.overTcp(server);
    this.acceptor.accept(served);
    const link = StreamLink.overTcp(client);
    this.newest = { client: link, server: served };
    this.onDial(this.newest);
    return link;
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.pair.events, outcome);
  }

  pass(ns: number): Promise<void> {
    return pass(this.pair.events, ns);
  }
}
