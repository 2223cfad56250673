import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { type CmListener, type CmRequest, ConnectionManager, peerAddress } from 'rocev2/internal/cm';
import {
  ConnectionLimiter,
  checkKind,
  checkOneOf,
  checkOptions,
  checkWhole,
  type OptionNames,
  Permits,
  RefusedPeers,
  RoceError,
  SeededRandom,
} from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { offerCrc32c, SYSTEM_CLOCK } from 'rocev2/internal/driver';
import { IpAddress } from 'rocev2/internal/packet';
import { FairPool, SocketStream } from 'rocev2/internal/storage-rpc';
import { Access, type MemoryRegion, type ProtectionDomain, type RdmaDevice } from 'rocev2/internal/verbs';
import { ANA_STATES, type AnaState } from '../ana.js';
import type { TlsNames } from '../auth/tls-key.js';
import { type CommandFaultCount, CommandFaults, parseCommandFaults } from '../command-faults.js';
import type { NvmePort } from '../discovery.js';
import { NVME_PORT } from '../opcodes.js';
import { QUEUE_ENTRIES_MAX } from '../properties.js';
import { encodeQueueAcceptance, encodeQueueRejection, REJECT_STATUS, readQueueRequest } from '../rdma/private-data.js';
import { RdmaQueueQuota, type RdmaQueueSlot } from '../rdma/rdma-queue-quota.js';
import { RdmaTargetConnection, type RdmaTargetShare } from '../rdma/rdma-target-connection.js';
import { checkNqn, type Subsystem } from '../subsystem.js';
import { NvmeTarget } from '../target.js';
import { ADDRESS_PART } from '../target-memory.js';
import type { TargetQueue } from '../target-queue.js';
import { TcpTargetConnection } from '../tcp/tcp-target-connection.js';
import { type NvmeHostTlsKey, NvmeTlsServer } from './nvme-tls.js';
import { ReservationFile } from './reservation-file.js';
import {
  checkDisk,
  checkKeys,
  checkSubsystem,
  type NvmeSubsystemOptions,
  namespaceInit,
  onePerHost,
  subsystemInit,
} from './subsystem-init.js';

/** Options of a target server: addresses, subsystems and limits. */
export interface NvmeTargetServerOptions {
  /** At least one. */
  readonly subsystems: readonly NvmeSubsystemOptions[];
  /** Devices for RDMA; without them the target uses only TCP. The caller closes them. */
  readonly devices?: readonly RdmaDevice[] | undefined;
  /** IP addresses for TCP; without them the target uses only RDMA. */
  readonly tcpAddresses?: readonly string[] | undefined;
  /** Port of RDMA_PS_TCP and of TCP. Default 4420. */
  readonly port?: number | undefined;
  /**
   * Keys of hosts for TLS 1.3. With them only these hosts may connect, and only over TLS; not together with `devices`,
   * because RDMA has no TLS.
   */
  readonly tlsKeys?: readonly NvmeHostTlsKey[] | undefined;
  /** Bytes of memory for data in flight, of each transport, 1 MiB and more. Default 64 MiB. */
  readonly poolBytesMax?: number | undefined;
  /** Firmware revision that hosts see, at most 8 characters. */
  readonly firmware?: string | undefined;
  /**
   * Path of the file for persistent reservations (CPTPL). Absent: reservations end with the target, and hosts cannot
   * request persistence.
   */
  readonly reservations?: string | undefined;
  /** Rules for I/O commands that fail or are slow, as in docs/nvme.md. */
  readonly faults?: string | undefined;
  /** Seed of rules with a probability. Default: a random one. */
  readonly seed?: number | undefined;
  /** Called with sentences for the log: the first host that was refused. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

const SERVER_OPTIONS: OptionNames<NvmeTargetServerOptions> = {
  subsystems: true,
  devices: true,
  tcpAddresses: true,
  port: true,
  tlsKeys: true,
  poolBytesMax: true,
  firmware: true,
  reservations: true,
  faults: true,
  seed: true,
  onNotice: true,
};

const POOL_BYTES_MAX = 64 << 20;
const POOL_BYTES_MIN = 1 << 20;
const NSID_MAX = 2 ** 32 - 2;
const WAITERS_MAX = 65_536;
/** Bytes of all outstanding READs: about as much as the port's link holds. */
const PULL_BYTES_MAX = 4 << 20;
const CONNECTION_LIMITS = { total: 4096, perAddress: 1024 };
const TOO_MANY = 'there are as many connections as there may be';
const ADMIN_ENTRIES_MAX = QUEUE_ENTRIES_MAX;
const READS_MAX = 16;

interface RdmaService {
  readonly cm: ConnectionManager;
  readonly pd: ProtectionDomain;
  readonly portId: number;
  readonly listener: CmListener;
  readonly share: RdmaTargetShare;
}

/** A target on the addresses of its devices, and on TCP. */
export class NvmeTargetServer implements AsyncDisposable {
  readonly #target: NvmeTarget;
  readonly #faults: CommandFaults | undefined;
  readonly #reservations: ReservationFile | undefined;
  readonly #memory: FairPool;
  readonly #limiter = new ConnectionLimiter<Socket>({
    quotas: [{ states: ['pending', 'admitted'], ...CONNECTION_LIMITS }],
    evict: (socket) => socket.destroy(),
  });
  readonly #rdmaQuota = new RdmaQueueQuota(SYSTEM_CLOCK);
  readonly #tls: NvmeTlsServer | undefined;
  readonly #listeners: Server[] = [];
  readonly #rdma: RdmaService[] = [];
  readonly #accepting = new Set<Promise<void>>();

  private constructor(options: NvmeTargetServerOptions, reservations: ReservationFile | undefined) {
    this.#reservations = reservations;
    const { subsystems, firmware = '', poolBytesMax = POOL_BYTES_MAX, faults, seed = randomInt(2 ** 31) } = options;
    const { onNotice } = options;
    this.#tls =
      options.tlsKeys &&
      new NvmeTlsServer(
        onePerHost(options.tlsKeys),
        subsystems.map(({ nqn }) => nqn),
      );
    if (faults !== undefined) {
      this.#faults = new CommandFaults(parseCommandFaults(faults), new SeededRandom(seed).stream('nvme faults'));
    }
    this.#target = new NvmeTarget({
      subsystems: subsystems.map((subsystem) => subsystemInit(subsystem, reservations)),
      clock: SYSTEM_CLOCK,
      firmware,
      randomBytes,
      refusedPeers: new RefusedPeers('a host', onNotice),
      ...(this.#faults !== undefined && { faults: this.#faults }),
    });
    this.#memory = new FairPool(
      {
        allocate: async (bytes) => ({ bytes: Buffer.allocUnsafeSlow(bytes) as Uint8Array, close: async () => {} }),
        clock: SYSTEM_CLOCK,
        bytesMax: poolBytesMax,
        waitersMax: WAITERS_MAX,
      },
      ADDRESS_PART,
    );
  }

  /**
   * Listens. Rejects with ERR_ROCE_IO or ERR_ROCE_BUSY if a port is in use, ERR_ROCE_MALFORMED for an invalid NQN,
   * fault rule or secret. Rejects with ERR_ROCE_CONFLICT for two subsystems of one name, two keys of a host and TLS
   * with RDMA. Rejects with ERR_ROCE_UNSUPPORTED for a TLS key of SHA-384, ERR_ROCE_UNKNOWN_NAME for an unknown option.
   */
  static async open(options: NvmeTargetServerOptions): Promise<NvmeTargetServer> {
    checkOptions('NvmeTargetServer.open', options, SERVER_OPTIONS);
    checkServerOptions(options);
    offerCrc32c();
    const { devices = [], tcpAddresses = [], port = NVME_PORT, poolBytesMax, tlsKeys } = options;
    if (tlsKeys !== undefined && devices.length > 0) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'RDMA has no TLS: hosts would get in without a key', 'use TCP alone');
    }
    const reservations =
      options.reservations === undefined ? undefined : await ReservationFile.open(options.reservations);
    const server = new NvmeTargetServer(options, reservations);
    try {
      const ports: NvmePort[] = [];
      for (const device of devices) {
        await server.#listenOnRdma(device, port, poolBytesMax ?? POOL_BYTES_MAX, ports.length + 1);
        ports.push({ transport: 'rdma', address: device.address, port });
      }
      for (const address of tcpAddresses) {
        const tcpPort = await server.#listenOnTcp(address, port, ports.length + 1);
        const security = tlsKeys === undefined ? {} : { security: 'tls' as const };
        ports.push({ transport: 'tcp', address: IpAddress.parse(address), port: tcpPort, ...security });
      }
      server.#target.ports = ports;
      server.ports = ports;
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  /** Why Linux kernel hosts cannot use its TLS; undefined if they can, and if it has no TLS. */
  get kernelTlsRefusal(): string | undefined {
    return this.#tls?.kernelRefusal;
  }

  /** The addresses that its discovery log page has. */
  ports: readonly NvmePort[] = [];

  /** Totals since the start. */
  get counters(): NvmeTarget['counters'] {
    return this.#target.counters;
  }

  /** The rules of {@link NvmeTargetServerOptions.faults}, and how many commands each has matched. */
  get faults(): readonly CommandFaultCount[] {
    return this.#faults?.counters ?? [];
  }

  /** Bytes of buffers that commands in flight hold now, of all transports. */
  get heldBytes(): number {
    return this.#rdma.reduce((sum, { share }) => sum + share.memory.heldBytes, this.#memory.heldBytes);
  }

  /** Queues of hosts by transport. */
  get connections(): NvmeTarget['connections'] {
    return this.#target.connections;
  }

  /** Hosts' associations, those with discovery among them. */
  get controllers(): number {
    return this.#target.controllers;
  }

  /**
   * Adds a namespace with the lowest free ID, and returns the ID; hosts are notified. The caller closes the disk, after
   * `removeNamespace` or `close`. Throws ERR_ROCE_NOT_FOUND where there is no such subsystem, ERR_ROCE_OUT_OF_RANGE for
   * a disk that cannot be one.
   */
  addNamespace(nqn: string, disk: BlockDevice, readOnly = false): number {
    checkKind('readOnly', readOnly, typeof readOnly === 'boolean', 'true or false');
    const subsystem = this.#subsystem(nqn);
    const used = new Set(subsystem.namespaces.map(({ nsid }) => nsid));
    let nsid = 1;
    while (used.has(nsid)) nsid++;
    subsystem.addNamespace(namespaceInit(nqn, nsid, disk, { readOnly, reservations: this.#reservations }));
    return nsid;
  }

  /**
   * Removes a namespace; hosts are notified. Resolves when its disk is no longer used. Rejects with ERR_ROCE_NOT_FOUND
   * where there is none.
   */
  async removeNamespace(nqn: string, nsid: number): Promise<void> {
    const subsystem = this.#subsystem(nqn);
    checkWhole('nsid', nsid, 1, NSID_MAX);
    await subsystem.removeNamespace(nsid);
  }

  /**
   * Resizes a namespace: `disk` has its data. Hosts are notified. Resolves when the previous disk is no longer used.
   * Rejects with ERR_ROCE_NOT_FOUND where there is none, ERR_ROCE_OUT_OF_RANGE for an unsuitable disk.
   */
  async resizeNamespace(nqn: string, nsid: number, disk: BlockDevice): Promise<void> {
    const subsystem = this.#subsystem(nqn);
    checkWhole('nsid', nsid, 1, NSID_MAX);
    checkDisk(disk);
    await subsystem.resizeNamespace(nsid, disk);
  }

  /**
   * Sets the ANA state of one of {@link ports}; hosts are notified, and multipath hosts choose by it. Throws
   * ERR_ROCE_NOT_FOUND for a port that is not one of them.
   */
  setAnaState(port: NvmePort, state: AnaState): void {
    const at = this.ports.indexOf(port);
    if (at < 0) throw new RoceError('ERR_ROCE_NOT_FOUND', 'the target has no such port', 'take one of its `ports`');
    checkOneOf('the ANA state', state, Object.keys(ANA_STATES));
    this.#target.setAnaState(at + 1, state);
  }

  #subsystem(nqn: string): Subsystem {
    checkNqn(nqn);
    const subsystem = this.#target.subsystem(nqn);
    if (subsystem?.kind === 'io') return subsystem;
    throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no subsystem ${nqn}`);
  }

  /** Commands and bytes of a subsystem's namespaces, in their order; undefined where there is no such subsystem. */
  namespaceCounters(nqn: string): readonly NamespaceCounters[] | undefined {
    return this.#target.subsystem(nqn)?.namespaces.map(({ nsid, counters }) => ({ nsid, ...counters }));
  }

  /** Ends all connections. Disks and devices stay open. */
  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.close();
    for (const { listener } of this.#rdma) listener.close();
    await this.#target.close();
    await Promise.all(this.#accepting);
    await this.#target.close();
    for (const { cm, pd, share } of this.#rdma.splice(0)) {
      await share.memory.close();
      await cm.close();
      await pd.close();
    }
    await this.#memory.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #listenOnTcp(host: string, port: number, portId: number): Promise<number> {
    const listener = createServer((socket) => this.#acceptTcp(socket, portId));
    listener.listen({ host, port });
    try {
      await once(listener, 'listening');
    } catch (cause) {
      const hint = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'another program uses the port' : undefined;
      throw new RoceError('ERR_ROCE_IO', `cannot listen on ${host} TCP port ${port}`, hint, { cause });
    }
    this.#listeners.push(listener);
    return (listener.address() as { port: number }).port;
  }

  #acceptTcp(socket: Socket, portId: number): void {
    let queue: TargetQueue | undefined;
    socket.on('error', () => {});
    const origin = peerAddress(socket);
    if (!this.#limiter.admit(socket, origin, () => queue?.isConnected === true)) {
      this.#target.refuseHost(origin.text, TOO_MANY);
      return;
    }
    socket.once('close', () => this.#limiter.leave(socket));
    const share = { memory: this.#memory, clock: SYSTEM_CLOCK };
    const accept = (stream: Socket, names?: TlsNames) => {
      const connection = new TcpTargetConnection(new SocketStream(stream), origin.text, share, names);
      queue = this.#target.accept(connection, portId);
    };
    if (this.#tls === undefined) accept(socket);
    else this.#tls.admit(socket, accept, (why) => this.#target.refuseHost(origin.text, why));
  }

  async #listenOnRdma(device: RdmaDevice, port: number, poolBytesMax: number, portId: number): Promise<void> {
    const cm = await ConnectionManager.open(device);
    const pd = await device.createPd();
    const memory = new FairPool<MemoryRegion>(
      {
        allocate: (bytes) => pd.regMr(bytes, Access.LOCAL_WRITE),
        clock: device.clock,
        bytesMax: poolBytesMax,
        waitersMax: WAITERS_MAX,
      },
      ADDRESS_PART,
    );
    const share = { memory, pulls: new Permits(PULL_BYTES_MAX) };
    const service = { cm, pd, portId, listener: cm.listen(port), share };
    this.#rdma.push(service);
    void this.#takeRequests(service);
  }

  async #takeRequests(service: RdmaService): Promise<void> {
    for await (const request of service.listener) {
      const accepted = this.#acceptRdma(service, request).catch(() => {});
      this.#accepting.add(accepted);
      void accepted.then(() => this.#accepting.delete(accepted));
    }
  }

  async #acceptRdma(service: RdmaService, request: CmRequest): Promise<void> {
    const asked = readQueueRequest(request.privateData);
    const refusal = typeof asked === 'number' ? asked : refusalOf(asked.sends, asked.receives, request);
    if (typeof asked === 'number' || refusal !== undefined) {
      request.reject(encodeQueueRejection(refusal!));
      return;
    }
    const slot = this.#rdmaQuota.admit(request.remote);
    if (slot === undefined) {
      this.#target.refuseHost(request.remote.text, TOO_MANY);
      request.reject(encodeQueueRejection(REJECT_STATUS.NO_RESOURCES));
      return;
    }
    try {
      await this.#openQueue(service, request, asked, slot);
    } catch (error) {
      this.#rdmaQuota.leave(slot);
      throw error;
    }
  }

  async #openQueue(
    { pd, portId, share }: RdmaService,
    request: CmRequest,
    { qid, sends: depth }: { readonly qid: number; readonly sends: number },
    slot: RdmaQueueSlot,
  ): Promise<void> {
    const reads = Math.min(READS_MAX, request.responderResources);
    const onClosed = () => this.#rdmaQuota.leave(slot);
    const init = { pd, share, remote: request.remote.text, qid, depth, reads, onClosed };
    let connection: RdmaTargetConnection;
    try {
      connection = await RdmaTargetConnection.create(init);
    } catch (error) {
      request.reject(encodeQueueRejection(REJECT_STATUS.NO_RESOURCES));
      throw error;
    }
    slot.end = () => connection.fail(new RoceError('ERR_ROCE_LIMIT', 'the queue did not connect, and others wait'));
    if (slot.isEvicted) {
      request.reject(encodeQueueRejection(REJECT_STATUS.NO_RESOURCES));
      await connection.close();
      return;
    }
    try {
      const privateData = encodeQueueAcceptance(depth);
      const terms = { privateData, responderResources: 0, initiatorDepth: reads, rnrRetryCount: 7 };
      const established = await request.accept(connection.qp, terms);
      const queue = this.#target.accept(connection, portId);
      slot.isConnected = () => queue.isConnected;
      void established.disconnected.then(() =>
        connection.fail(new RoceError('ERR_ROCE_CONNECT', 'the host has disconnected')),
      );
      connection.start(() => void established.disconnect());
    } catch (error) {
      await connection.close();
      throw error;
    }
  }
}

function checkServerOptions(options: NvmeTargetServerOptions): void {
  const {
    subsystems,
    devices,
    tcpAddresses,
    port,
    tlsKeys,
    poolBytesMax,
    firmware,
    reservations,
    faults,
    seed,
    onNotice,
  } = options;
  checkKind('subsystems', subsystems, Array.isArray(subsystems), 'a list of subsystems');
  for (const subsystem of subsystems) checkSubsystem(subsystem);
  checkKind('devices', devices, devices === undefined || Array.isArray(devices), 'a list of devices');
  for (const device of devices ?? []) {
    checkKind('a device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
  }
  checkKind(
    'tcpAddresses',
    tcpAddresses,
    tcpAddresses === undefined || Array.isArray(tcpAddresses),
    'a list of addresses',
  );
  for (const address of tcpAddresses ?? []) IpAddress.parse(address);
  if (port !== undefined) checkWhole('port', port, 0, 65_535);
  if (tlsKeys !== undefined) checkKeys('tlsKeys', tlsKeys);
  if (poolBytesMax !== undefined) checkWhole('poolBytesMax', poolBytesMax, POOL_BYTES_MIN, Number.MAX_SAFE_INTEGER);
  for (const [name, text] of Object.entries({ firmware, reservations, faults })) {
    checkKind(name, text, text === undefined || typeof text === 'string', 'text');
  }
  if (seed !== undefined) checkWhole('seed', seed, 0, 2 ** 32 - 1);
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
}

/** Counters of one namespace. */
export interface NamespaceCounters {
  /** Namespace ID. */
  readonly nsid: number;
  /** Read commands. */
  readonly reads: number;
  /** Write commands. */
  readonly writes: number;
  /** Bytes of read commands. */
  readonly bytesRead: number;
  /** Bytes of write commands. */
  readonly bytesWritten: number;
  /** Commands whose disk failed. */
  readonly mediaErrors: number;
}

function refusalOf(sends: number, receives: number, { responderResources }: CmRequest): number | undefined {
  if (sends < 2 || sends > ADMIN_ENTRIES_MAX) return REJECT_STATUS.INVALID_SEND_QUEUE;
  if (receives < 1) return REJECT_STATUS.INVALID_RECEIVE_QUEUE;
  return responderResources === 0 ? REJECT_STATUS.INVALID_ORD : undefined;
}
