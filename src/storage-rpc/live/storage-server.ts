/** One TCP port is for both: a connection exchanges queue pairs, or carries sK over TCP. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { ControlChannel } from '../../cm/control-channel.js';
import { exchangeAsServer } from '../../cm/exchange.js';
import type { HostTransport } from '../../cm/rdma-fallback.js';
import type { ChannelSecurity } from '../../cm/secure-channel.js';
import { peerAddress } from '../../cm/tcp-address.js';
import { checkBoolean, checkKind, checkOptions, checkText } from '../../core/arguments.js';
import { ConnectionLimiter } from '../../core/connection-limiter.js';
import { RoceError } from '../../core/errors.js';
import { FairQueue } from '../../core/fair-queue.js';
import { Permits } from '../../core/permits.js';
import { RefusedPeers } from '../../core/refused-peers.js';
import { offerCrc32c } from '../../driver/crc32/crc32c-choice.js';
import { SYSTEM_CLOCK, wallMs } from '../../driver/system-clock.js';
import { Access } from '../../verbs/access.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { BlockDevice } from '../disk/block-device.js';
import { BufferPool } from '../pool/buffer-pool.js';
import { POOL_SHARE } from '../pool/fair-pool.js';
import type { SkServerChannel } from '../sk/channel.js';
import { SK_SERVER_QP, SK_TOTAL_TIMEOUT } from '../sk/rdma-parts.js';
import { RdmaServerChannel, type SkServerShare } from '../sk/rdma-server-channel.js';
import { checkNamedDisk, type NamedDisk, type ServedDisk } from '../sk/served-disk.js';
import type { SkServerCounters } from '../sk/server-counters.js';
import { SkServer } from '../sk/sk-server.js';
import { TcpServerChannel } from '../sk/tcp-channels.js';
import { flowTerms } from './flow-options.js';
import { connectChannel } from './rdma-exchange.js';
import { SetUpSlots } from './set-up-slots.js';
import { securityOf, sortSocket } from './socket-security.js';
import { checkServerOptions, type StorageServerOptions } from './storage-server-options.js';

const MEMORY_BYTES_MAX = 192 << 20;
/** Memory that each TCP connection may always have. */
const SHARE_BYTES = 64 << 10;
/**
 * A client that waits for memory is not read from, and drops a server that is silent for 3 s; a closed client continues
 * over a new connection.
 */
const STUCK_NS = 1e9;
const POOL_BYTES_MAX = 64 << 20;
const PULL_BYTES_MAX = 4 << 20;
const SESSION_TIMEOUT_MS = 10_000;
const CONNECTION_LIMITS = { total: 1024, perAddress: 256 };

interface TcpPeer {
  channel: SkServerChannel | undefined;
}

interface RdmaService {
  readonly pd: ProtectionDomain;
  readonly share: SkServerShare;
}

/** A disk of a storage server, as it is now. */
export interface StorageServerDisk extends Pick<NamedDisk, 'name' | 'device'> {
  /** Clients can only read. */
  readonly readOnly: boolean;
  /** Clients that have a lease. */
  readonly writers: ReadonlyArray<{
    /** The client's own name for itself. */
    readonly label: string;
    /** It writes together with others. */
    readonly isShared: boolean;
    /** Whether it has a connection. */
    readonly isConnected: boolean;
  }>;
  /** Number of connections by transport. */
  readonly transports: Readonly<Record<HostTransport, number>>;
}

/** A storage server on one TCP port. */
export class StorageServer implements AsyncDisposable {
  readonly #options: StorageServerOptions;
  readonly #server: SkServer;
  readonly #listener: Server;
  readonly #rdma: RdmaService | undefined;
  readonly #security: ChannelSecurity | undefined;
  readonly #refusedPeers: RefusedPeers;
  readonly #memory: FairQueue;
  readonly #limiter = new ConnectionLimiter<Socket>({
    quotas: [{ states: ['pending', 'admitted'], ...CONNECTION_LIMITS }],
    evict: (socket) => socket.destroy(),
    handshakeDeadline: { clock: SYSTEM_CLOCK, ms: SESSION_TIMEOUT_MS },
  });
  readonly #setUps = new SetUpSlots(SYSTEM_CLOCK);
  readonly #accepting = new Set<Promise<void>>();

  private constructor(
    options: StorageServerOptions,
    listener: Server,
    rdma: RdmaService | undefined,
    security: ChannelSecurity | undefined,
  ) {
    this.#options = options;
    this.#security = security;
    this.#listener = listener;
    this.#rdma = rdma;
    const { disks = [], namedDisks = [], inlineWriteBytesMax, onNotice, limit, leaseNs } = options;
    this.#refusedPeers = new RefusedPeers('a client', onNotice);
    const { memoryBytesMax = MEMORY_BYTES_MAX } = options;
    this.#memory = new FairQueue({
      clock: SYSTEM_CLOCK,
      bytesMax: memoryBytesMax - CONNECTION_LIMITS.total * SHARE_BYTES,
      shareBytes: SHARE_BYTES,
      stuckNs: STUCK_NS,
    });
    this.#server = new SkServer({
      disks,
      clock: SYSTEM_CLOCK,
      bootId: randomBytes(8).readBigUInt64LE(),
      firstTerm: Math.floor(wallMs() / 1000),
      ...(leaseNs !== undefined && { leaseNs }),
      ...(inlineWriteBytesMax !== undefined && { inlineWriteBytesMax }),
      ...(onNotice !== undefined && { onNotice }),
      ...(limit !== undefined && { limit }),
    });
    for (const disk of namedDisks) this.#server.disks.add(disk);
    listener.on('connection', (socket: Socket) => this.#onConnection(socket));
  }

  /**
   * Rejects with ERR_ROCE_IO if the port is in use, ERR_ROCE_UNKNOWN_NAME for an unknown option, ERR_ROCE_OUT_OF_RANGE
   * for an invalid limit, lease or memory. Rejects with ERR_ROCE_CONFLICT for two disks of one name, and for `secure`
   * together with a device.
   */
  static async open(options: StorageServerOptions): Promise<StorageServer> {
    checkServerOptions(options);
    offerCrc32c();
    const { host, port, device, secure } = options;
    const security = securityOf(device, secure);
    const rdma = device === undefined ? undefined : await openRdma(device, options);
    const server = new StorageServer(options, createServer({ pauseOnConnect: false }), rdma, security);
    server.#listener.listen({ host, port });
    try {
      await once(server.#listener, 'listening');
    } catch (error) {
      await server.#closeRdma();
      throw new RoceError('ERR_ROCE_IO', `cannot listen on ${host}:${port}: ${(error as Error).message}`);
    }
    return server;
  }

  /** TCP port it listens on. */
  get port(): number {
    return (this.#listener.address() as { port: number }).port;
  }

  /** Connections closed for lack of room: new ones, or ones without a session that made room. */
  get turnedAway(): number {
    return this.#limiter.turnedAway;
  }

  /**
   * Connections of peers that did not authenticate as an allowed identity, or came without TLS where it is required.
   */
  get untrusted(): number {
    return this.#refusedPeers.count;
  }

  /** Counters of all sessions. */
  get counters(): Readonly<SkServerCounters> {
    return this.#server.counters;
  }

  /** The disks with names, as they are now. */
  get namedDisks(): StorageServerDisk[] {
    const nowNs = SYSTEM_CLOCK.nowNs();
    return this.#server.disks.named.map((disk) => ({
      name: disk.name,
      device: disk.device,
      readOnly: disk.readOnly,
      writers: disk.lease
        .holders(nowNs)
        .map(({ label, access, isConnected }) => ({ label, isShared: access === 'shared', isConnected })),
      transports: this.#transportsTo(disk),
    }));
  }

  /**
   * Adds a disk; the caller closes it. Throws ERR_ROCE_CONFLICT if the name is taken, ERR_ROCE_OUT_OF_RANGE and
   * ERR_ROCE_INVALID_ARGUMENT for an invalid name.
   */
  addDisk(disk: NamedDisk): void {
    checkNamedDisk(disk);
    this.#server.disks.add(disk);
  }

  /**
   * Takes a disk out of service. Rejects with ERR_ROCE_NOT_FOUND, and with ERR_ROCE_BUSY while a client holds a lease,
   * unless `force` is set: then its clients are disconnected. Resolves with the unused disk; the caller closes it.
   */
  async removeDisk(name: string, options: { readonly force?: boolean | undefined } = {}): Promise<BlockDevice> {
    checkOptions('removeDisk', options, { force: true });
    const { force = false } = options;
    checkBoolean('force', force);
    checkText('the name of a disk', name);
    const [writer] = this.#server.disks.get(name).lease.holders(SYSTEM_CLOCK.nowNs());
    if (writer !== undefined && !force) {
      throw new RoceError(
        'ERR_ROCE_BUSY',
        `${writer.label || 'a client'} writes to '${name}'`,
        'end it first, or force it',
      );
    }
    return this.#server.removeDisk(name);
  }

  /**
   * Replaces the device of a disk, such as after it has grown. Requests in flight are finished first, others wait;
   * `open` gets the old device. Rejects with ERR_ROCE_NOT_FOUND, and as `open`, after which the old device is still in
   * use.
   */
  async exchangeDisk(name: string, open: (old: BlockDevice) => Promise<BlockDevice>): Promise<void> {
    checkText('the name of a disk', name);
    checkKind('open', open, typeof open === 'function', 'a function that resolves with the new disk');
    return this.#server.disks.get(name).exchange(open);
  }

  /**
   * The disk is owned here again after another owner had it (`BlockDevice.notOwner`): its clients resume again, and
   * none of their earlier requests reach it. Rejects with ERR_ROCE_NOT_FOUND. Resolves when no request is at the disk.
   */
  renewDisk(device: BlockDevice): Promise<void> {
    return this.#server.renewDisk(device);
  }

  /** Number of connections, over both transports. */
  get connections(): number {
    return this.#server.connections;
  }

  /** Number of connections by transport. */
  get transports(): Readonly<Record<HostTransport, number>> {
    return this.#transportsTo(undefined);
  }

  #transportsTo(disk: ServedDisk | undefined): Record<HostTransport, number> {
    return { rdma: this.#server.connectionsOver('rdma', disk), tcp: this.#server.connectionsOver('tcp', disk) };
  }

  /** Bytes of requests and answers that connections over TCP hold now. */
  get heldBytes(): number {
    return this.#memory.heldBytes;
  }

  /** Memory for data in flight; undefined without RDMA. */
  get pool():
    | {
        /** Bytes of all slabs. */
        readonly registeredBytes: number;
        /** Buffers on loan. */
        readonly inUse: number;
      }
    | undefined {
    return this.#rdma?.share.pool;
  }

  /** Ends all connections and sessions. Disks and device stay open. */
  async close(): Promise<void> {
    this.#listener.close();
    await this.#server.close();
    for (const socket of this.#limiter.connections) socket.destroy();
    await Promise.all(this.#accepting);
    await this.#server.close();
    await this.#closeRdma();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #closeRdma(): Promise<void> {
    this.#memory.close();
    this.#rdma?.share.memory.close();
    await this.#rdma?.share.pool.close();
    await this.#rdma?.pd.close();
  }

  #onConnection(socket: Socket): void {
    const peer: TcpPeer = { channel: undefined };
    socket.on('error', () => {});
    if (!this.#limiter.admit(socket, peerAddress(socket), () => this.#isServed(peer))) return;
    socket.on('close', () => this.#limiter.leave(socket));
    sortSocket(socket, this.#security, {
      onExchange: (control) => this.#accept(control, peer),
      onStream: (stream) => {
        peer.channel = new TcpServerChannel(stream, { memory: this.#memory, clock: SYSTEM_CLOCK });
        this.#server.accept(peer.channel);
      },
      onUntrusted: (error) => this.#refusedPeers.add(String(peerAddress(socket)), error.message),
    });
  }

  #isServed({ channel }: TcpPeer): boolean {
    return channel !== undefined && this.#server.serves(channel);
  }

  #accept(control: ControlChannel, peer: TcpPeer): void {
    const accepted = this.#acceptRdma(control, peer);
    this.#accepting.add(accepted);
    void accepted.then(() => this.#accepting.delete(accepted));
  }

  async #acceptRdma(control: ControlChannel, peer: TcpPeer): Promise<void> {
    const rdma = this.#rdma;
    if (rdma === undefined) {
      control.send({ refused: 'this server has no RDMA' });
      control.close();
      return;
    }
    try {
      control.unread(await control.receive()); // A peer that never completes the hello gets no queue pair.
      const onClosed = await this.#setUps.take(control, () => this.#isServed(peer));
      const { pd, share } = rdma;
      const terms = { service: 'sk-rdma', flow: flowTerms(this.#options), totalTimeout: SK_TOTAL_TIMEOUT } as const;
      const side = { pd, init: SK_SERVER_QP, exchange: exchangeAsServer, onClosed };
      await connectChannel(control, { ...side, ...terms }, async (parts) => {
        const channel = await RdmaServerChannel.over(parts, share);
        peer.channel = channel;
        this.#server.accept(channel);
        return channel;
      });
    } catch {
      control.close();
    }
  }
}

async function openRdma(device: RdmaDevice, options: StorageServerOptions): Promise<RdmaService> {
  const pd = await device.createPd();
  const { poolBytesMax = POOL_BYTES_MAX, pullBytesMax = PULL_BYTES_MAX } = options;
  const { clock } = device;
  const allocate = (bytes: number) => pd.regMr(bytes, Access.LOCAL_WRITE);
  const pool = new BufferPool({ allocate, clock, bytesMax: poolBytesMax });
  const memory = new FairQueue({ clock, bytesMax: poolBytesMax * POOL_SHARE });
  return { pd, share: { pool, memory, pulls: new Permits(pullBytesMax) } };
}
