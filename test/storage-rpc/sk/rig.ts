/** A storage server and a client on two simulated hosts, with RDMA and TCP between them, in virtual time. */

import { SimLink } from '../../../packages/lab/src/sim/sim-link.js';
import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import type { Clock } from '../../../src/core/clock.js';
import { FairQueue, type FairQueueOptions } from '../../../src/core/fair-queue.js';
import { Permits } from '../../../src/core/permits.js';
import { type RandomSource, SeededRandom } from '../../../src/core/random.js';
import type { BlockDevice } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { BufferPool } from '../../../src/storage-rpc/pool/buffer-pool.js';
import { HostConnections, type HostConnectionsOptions } from '../../../src/storage-rpc/session/host-connections.js';
import type { SkServerChannel } from '../../../src/storage-rpc/sk/channel.js';
import { ClientSession } from '../../../src/storage-rpc/sk/client-session.js';
import type { ClientSessionOptions } from '../../../src/storage-rpc/sk/client-session-options.js';
import type { SkIo } from '../../../src/storage-rpc/sk/client-slots.js';
import { OwnMemory } from '../../../src/storage-rpc/sk/own-memory.js';
import { RdmaClientChannel } from '../../../src/storage-rpc/sk/rdma-client-channel.js';
import { SK_CLIENT_QP, SK_SERVER_QP, type SkRdmaParts } from '../../../src/storage-rpc/sk/rdma-parts.js';
import { RdmaServerChannel } from '../../../src/storage-rpc/sk/rdma-server-channel.js';
import { RemoteDisk } from '../../../src/storage-rpc/sk/remote-disk.js';
import { SkServer, type SkServerOptions } from '../../../src/storage-rpc/sk/sk-server.js';
import { TcpClientChannel, TcpServerChannel } from '../../../src/storage-rpc/sk/tcp-channels.js';
import type { MemoryRegion } from '../../../src/verbs/memory-region.js';
import type { ProtectionDomain } from '../../../src/verbs/protection-domain.js';
import type { QueuePairInit } from '../../../src/verbs/queue-pair.js';
import { connectQp, createPair, type Pair, type PairOptions, type Player } from '../../support/pair.js';
import { pass, until } from '../../support/virtual-time.js';
import { createPipe, type PipeEnd } from './pipe.js';

export const DISK_BYTES = 8 << 20;
const MTU = 4096;
const POOL_BYTES = 64 << 20;

export interface RigOptions extends PairOptions {
  disk?: BlockDevice;
  server?: Partial<SkServerOptions>;
  pullBytesMax?: number;
  memory?: Partial<FairQueueOptions>;
  tcpDelayNs?: number;
}

export class Rig {
  readonly pair: Pair;
  readonly clock: Clock;
  readonly random: SeededRandom;
  disk: BlockDevice;
  server: SkServer;
  readonly pool: BufferPool<MemoryRegion>;
  readonly pulls: Permits;
  /** Memory of the client's program. */
  readonly own = new OwnMemory();
  readonly memory: FairQueue;
  readonly #options: RigOptions;
  readonly #serverPd: ProtectionDomain;
  readonly #sessionRandom: RandomSource;
  /** The newest connection's ends, for tests that interfere. */
  rdma:
    | { client: RdmaClientChannel; server: RdmaServerChannel; clientParts: SkRdmaParts; serverParts: SkRdmaParts }
    | undefined;
  pipe: { client: PipeEnd; server: PipeEnd } | undefined;
  #psn = 0x100;
  #boots = 0;

  private constructor(pair: Pair, options: RigOptions) {
    this.pair = pair;
    this.clock = virtualClock(pair.events);
    this.random = new SeededRandom(options.seed ?? 1);
    this.#options = options;
    this.#sessionRandom = this.random.stream('sessions');
    this.disk = options.disk ?? new MemoryDevice(DISK_BYTES);
    this.#serverPd = pair.b.pd;
    this.pool = new BufferPool({
      allocate: (bytes) => this.#serverPd.regMr(bytes, 1),
      clock: this.clock,
      bytesMax: POOL_BYTES,
    });
    this.memory = new FairQueue({ clock: this.clock, bytesMax: POOL_BYTES, ...options.memory });
    this.pulls = new Permits(options.pullBytesMax ?? 4 << 20);
    this.server = this.boot();
  }

  static async create(options: RigOptions = {}): Promise<Rig> {
    return new Rig(await createPair({ mtu: MTU, memoryBytes: 4096, ...options }), options);
  }

  /** A fresh server over the same disk, as after a restart, or over another one. */
  boot(disk = this.disk): SkServer {
    this.disk = disk;
    this.server = new SkServer({
      disks: [this.disk],
      clock: this.clock,
      bootId: BigInt(++this.#boots),
      ...this.#options.server,
    });
    return this.server;
  }

  async #parts(player: Player, pd: ProtectionDomain, init: Partial<QueuePairInit>): Promise<SkRdmaParts> {
    const sendCq = await player.device.createCq(1024);
    const recvCq = await player.device.createCq(1024);
    const qp = await pd.createQp({ sendCq, recvCq, ...init });
    return { pd, qp, sendCq, recvCq, clock: this.clock };
  }

  /** Connects over RDMA. Works only while the link lets commands through, which take no virtual time. */
  async dialRdma(): Promise<RdmaClientChannel> {
    const { a, b } = this.pair;
    const clientParts = await this.#parts(a, await a.device.createPd(), SK_CLIENT_QP);
    const serverParts = await this.#parts(b, this.#serverPd, SK_SERVER_QP);
    const psn = { a: this.#psn++, b: this.#psn++ };
    const own = { mtu: this.#options.mtu ?? MTU, recovery: 'go-back-n' } as const;
    const toB = { address: b.host.address, qpn: serverParts.qp.qpn, psn: psn.b };
    const toA = { address: a.host.address, qpn: clientParts.qp.qpn, psn: psn.a };
    await connectQp(clientParts.qp, toB, { ...own, psn: psn.a });
    await connectQp(serverParts.qp, toA, { ...own, psn: psn.b });
    const { pool, pulls, memory } = this;
    const server = await RdmaServerChannel.over(serverParts, { pool, pulls, memory });
    this.server.accept(server);
    const client = await RdmaClientChannel.over(clientParts, POOL_BYTES, this.own);
    this.rdma = { client, server, clientParts, serverParts };
    return client;
  }

  dialTcp(): TcpClientChannel {
    const [client, server] = createPipe(this.pair.events, this.#options.tcpDelayNs ?? 10_000);
    this.pipe = { client, server };
    this.server.accept(new TcpServerChannel(server, this) as SkServerChannel);
    return new TcpClientChannel(client);
  }

  session(options: Partial<ClientSessionOptions> = {}): ClientSession {
    return new ClientSession({ clock: this.clock, random: this.#sessionRandom, ...options });
  }

  /** A session resumed over the given transport. */
  async connected(transport: 'rdma' | 'tcp', options: Partial<ClientSessionOptions> = {}): Promise<ClientSession> {
    const session = this.session(options);
    await this.until(session.resume(transport === 'rdma' ? await this.dialRdma() : this.dialTcp()));
    return session;
  }

  /** A disk over a connected session. */
  remoteDisk(session: ClientSession): RemoteDisk {
    return new RemoteDisk(session, session.server!, () => session.end(new Error('closed')));
  }

  /** All connections of the client to the server, over both transports. */
  host(options: Partial<HostConnectionsOptions> = {}): HostConnections {
    return new HostConnections({
      clock: this.clock,
      random: this.random.stream('host'),
      dial: { rdma: () => this.dialRdma(), tcp: async () => this.dialTcp() },
      ...options,
    });
  }

  /** Nothing passes between the hosts over RDMA until `heal`. */
  cut(): void {
    const { events, a, b } = this.pair;
    for (const { host } of [a, b]) host.connect(() => events.nowNs + 1000);
  }

  heal(delayNs = this.#options.delayNs ?? 2000): void {
    const { events, a, b } = this.pair;
    new SimLink(a.host, b.host, { events, rateBps: 10e9, delayNs });
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.pair.events, outcome);
  }

  /** For code that runs while somebody else runs time. */
  sleep(ns: number): Promise<void> {
    return new Promise((resolve) => this.pair.events.after(ns, resolve));
  }

  pass(ns: number): Promise<void> {
    return pass(this.pair.events, ns);
  }
}

export function writeIo(offset: number, data: Uint8Array, flags = 0): SkIo {
  return { op: 'WRITE', offset, length: data.length, data, flags };
}

export function readIo(offset: number, into: Uint8Array): SkIo {
  return { op: 'READ', offset, length: into.length, take: (data) => into.set(data) };
}

/** Bytes that differ from block to block and run to run. */
export function pattern(length: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) bytes[i] = (Math.imul(i ^ (seed * 2654435761), 0x9e3779b1) >>> 24) ^ (i >>> 12);
  return bytes;
}
