import { randomInt } from 'node:crypto';
import { hostname } from 'node:os';
import process from 'node:process';
import { dial } from '../../cm/control-channel.js';
import { exchangeAsClient } from '../../cm/exchange.js';
import type { HostTransport, PathState } from '../../cm/rdma-fallback.js';
import type { ChannelSecurity } from '../../cm/secure-channel.js';
import {
  checkBoolean,
  checkKind,
  checkOneOf,
  checkOptions,
  checkText,
  checkWhole,
  ifGiven,
  type OptionNames,
} from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { U32 } from '../../core/u64.js';
import { NS_PER_S } from '../../core/units.js';
import { offerCrc32c } from '../../driver/crc32/crc32c-choice.js';
import { SYSTEM_CLOCK } from '../../driver/system-clock.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { SecureOptions } from '../../verbs/security.js';
import { uuidBytes } from '../disk/disk-identity.js';
import { type DiskReconnector, HostConnections, type HostConnectionsOptions } from '../session/host-connections.js';
import type { HostEvent } from '../session/host-event.js';
import type { SkClientChannel } from '../sk/channel.js';
import type { DiskAccess } from '../sk/disk-lease.js';
import { OwnMemory } from '../sk/own-memory.js';
import { RdmaClientChannel } from '../sk/rdma-client-channel.js';
import { SK_CLIENT_QP, SK_TOTAL_TIMEOUT } from '../sk/rdma-parts.js';
import { RemoteDisk } from '../sk/remote-disk.js';
import { checkInlineWriteBytesMax } from '../sk/request.js';
import { TcpClientChannel } from '../sk/tcp-channels.js';
import { FLOW_OPTIONS, type FlowOptions, flowTerms } from './flow-options.js';
import { connectChannel } from './rdma-exchange.js';
import { type FindServer, type ServerAddress, ServerResolver } from './server-resolver.js';
import { dialStream, securityOf } from './socket-security.js';

/** How a storage client connects and recovers. */
export interface StorageClientOptions extends FlowOptions {
  /**
   * Name or address of the server. Several: one of them has the disk; they are tried in turn, also after a lost
   * connection or disk. A function: it locates the disk, and is called before each attempt to connect.
   */
  readonly host: string | readonly string[] | FindServer;
  /** TCP port of the server, or of each, also for the set-up of RDMA. Ignored if `host` is a function. */
  readonly port: number;
  /** Device for RDMA; without it the client uses TCP. Its credentials also protect TCP. The caller closes it. */
  readonly device?: RdmaDevice | undefined;
  /** Credentials of a client without a device: TCP is protected by TLS 1.3. */
  readonly secure?: SecureOptions | undefined;
  /** False: no failover to TCP. Default true. */
  readonly tcp?: boolean | undefined;
  /** Name of the server's disk, or its index; default: the first. */
  readonly disk?: string | number | undefined;
  /**
   * `write`: exclusive; `shared`: together with other clients that share the disk, such as the nodes of a cluster file
   * system; `read`: read only, regardless of writers. Default `write`.
   */
  readonly access?: DiskAccess | undefined;
  /** Name of this client, shown to others while the disk is in use. Default: host name and process number. */
  readonly label?: string | undefined;
  /**
   * Wait for as long as another client writes to the disk. Default: only for a client that is gone, until its lease
   * ends.
   */
  readonly standby?: boolean | undefined;
  /** Number of sessions, 1 to 1024, each with its own connection and 128 requests; default 1. */
  readonly sessions?: number | undefined;
  /** Largest write in bytes that is part of its request, 0..8192; default 8192. */
  readonly inlineWriteBytesMax?: number | undefined;
  /** When to return to RDMA after a failure; see RdmaFallback. */
  readonly path?: HostConnectionsOptions['path'] | undefined;
  /**
   * Requests fail after this long without a connection to the server, until there is one; default: they wait
   * indefinitely.
   */
  readonly giveUpNs?: number | undefined;
  /**
   * UUID that the server's disk must have. Default: any; from then on, only the disk that the first connection found.
   */
  readonly uuid?: string | undefined;
  /** Called with messages for the operator: the server cannot be reached, has another disk, is back. */
  readonly onNotice?: ((notice: string) => void) | undefined;
  /**
   * Called with path events: failover, return, outage, give-up, fenced, back. Called after the event, outside of the
   * client: exceptions are uncaught.
   */
  readonly onEvent?: ((event: HostEvent) => void) | undefined;
}

const CLIENT_OPTIONS: OptionNames<StorageClientOptions> = {
  host: true,
  port: true,
  device: true,
  secure: true,
  tcp: true,
  ...FLOW_OPTIONS,
  disk: true,
  access: true,
  label: true,
  standby: true,
  sessions: true,
  inlineWriteBytesMax: true,
  path: true,
  giveUpNs: true,
  uuid: true,
  onNotice: true,
  onEvent: true,
};
const PATH_OPTIONS: OptionNames<NonNullable<StorageClientOptions['path']>> = {
  holdDownNs: true,
  holdDownMaxNs: true,
  cleanNs: true,
};

/** Statistics of a client. */
export interface StorageClientReport {
  /** State of the path to the server. */
  readonly state: PathState;
  /** Sessions by transport. */
  readonly sessions: Readonly<Record<HostTransport, number>>;
  /** How often RDMA failed and sessions moved to TCP. */
  readonly failovers: number;
  /** Sessions moved to another transport without a failure. */
  readonly moves: number;
  /** Failed moves; the session stayed on its transport. */
  readonly failedMoves: number;
  /** Probes of RDMA after a hold-down. */
  readonly probes: number;
  /** Requests repeated over a new connection. */
  readonly resentRequests: number;
  /** Responses with wrong data, which were requested again. */
  readonly crcMismatches: number;
  /** How often a session found a restarted server. */
  readonly serverRestarts: number;
  /** How often the server could not be reached by any transport. */
  readonly outages: number;
  /** The present outage; null if there is none. */
  readonly outage: {
    /** How long it has lasted. */
    readonly seconds: number;
    /** Why the last attempt to connect failed. */
    readonly reason: string;
    /** The server answers, with another disk. */
    readonly isWrongDisk: boolean;
  } | null;
}

const POOL_BYTES_MAX = 32 << 20;
const SESSIONS_MAX = 1024;

/** A client of one disk of a storage server; fails over between RDMA and TCP under running I/O. */
export class StorageClient implements AsyncDisposable {
  /** The disk; its requests use the sessions in turn. */
  readonly disk: RemoteDisk;
  readonly #connections: HostConnections;
  readonly #reconnectors: readonly DiskReconnector[];
  readonly #device: RdmaDevice | undefined;
  readonly #own: OwnMemory;

  private constructor(
    connections: HostConnections,
    reconnectors: readonly DiskReconnector[],
    device: RdmaDevice | undefined,
    own: OwnMemory,
  ) {
    this.#connections = connections;
    this.#device = device;
    this.#own = own;
    this.#reconnectors = reconnectors;
    let turn = 0;
    const sessions = reconnectors.map(({ session }) => session);
    this.disk = new RemoteDisk(
      {
        submit: (io) => sessions[turn++ % sessions.length].submit(io),
        get transport() {
          return sessions[turn % sessions.length].transport;
        },
        durability: connections.durability,
        shortenDeadline: () => connections.shortenDeadline(),
        get diskBytes() {
          return Math.max(...sessions.map((session) => session.diskBytes));
        },
        askSize: (timeoutNs) => sessions[0].askSize(timeoutNs),
      },
      sessions[0].server!,
      () => connections.close(),
    );
  }

  /**
   * Rejects with ERR_ROCE_CONNECT when the server cannot be reached by any transport, ERR_ROCE_MISMATCH when it has
   * another disk than `uuid`. Rejects with ERR_ROCE_NOT_FOUND when it has no disk of this name or index, ERR_ROCE_BUSY
   * (a {@link DiskInUse}) when another client writes to it, and ERR_ROCE_MALFORMED for an invalid UUID. Rejects with
   * ERR_ROCE_UNKNOWN_NAME for an unknown option or name, ERR_ROCE_CONFLICT for `secure` together with a device.
   */
  static async connect(options: StorageClientOptions): Promise<StorageClient> {
    checkOptions('StorageClient.connect', options, CLIENT_OPTIONS);
    if (options.path !== undefined) checkOptions('path of StorageClient.connect', options.path, PATH_OPTIONS);
    checkClientOptions(options);
    flowTerms(options);
    offerCrc32c();
    const {
      device,
      secure,
      tcp = true,
      inlineWriteBytesMax,
      path,
      giveUpNs,
      uuid,
      onNotice,
      onEvent,
      sessions = 1,
    } = options;
    const { disk = 0, access = 'write', label = `process ${process.pid} on ${hostname()}`, standby } = options;
    if (uuid !== undefined) uuidBytes(uuid);
    const security = securityOf(device, secure);
    const own = new OwnMemory();
    const resolver = new ServerResolver(options.host, options.port, sessions);
    const connections = new HostConnections({
      clock: SYSTEM_CLOCK,
      random: { u32: () => randomInt(2 ** 32) },
      dial: {
        ...(device !== undefined && { rdma: () => dialRdma(device, resolver.server, options, { own, security }) }),
        ...(tcp && { tcp: () => dialTcp(resolver.server, security) }),
      },
      locate: () => resolver.locate(),
      session: {
        follows: resolver.canMove,
        ...(typeof disk === 'number' && { disk }),
        ...(inlineWriteBytesMax !== undefined && { inlineWriteBytesMax }),
      },
      claim: { access, label, ...(typeof disk === 'string' && { name: disk }) },
      ...(standby !== undefined && { standby }),
      ...(path !== undefined && { path }),
      ...(giveUpNs !== undefined && { giveUpNs }),
      ...(uuid !== undefined && { uuid: uuid.toLowerCase() }),
      onReach: (error) => resolver.onReach(error),
      ...(onNotice !== undefined && { onNotice }),
      ...(onEvent !== undefined && { onEvent: (event: HostEvent) => queueMicrotask(() => onEvent(event)) }),
    });
    try {
      const reconnectors: DiskReconnector[] = [];
      for (let i = 0; i < sessions; i++) reconnectors.push(await openSomewhere(connections, resolver.attempts));
      return new StorageClient(connections, reconnectors, device, own);
    } catch (error) {
      await connections.close();
      throw error;
    }
  }

  /** The statistics so far. */
  get report(): StorageClientReport {
    const { state, counters, outage, outages } = this.#connections;
    const sum = (name: 'resent' | 'crcMismatches' | 'serverRestarts') =>
      this.#reconnectors.reduce((total, { session }) => total + session.counters[name], 0);
    return {
      state,
      sessions: { rdma: this.#connections.count('rdma'), tcp: this.#connections.count('tcp') },
      failovers: counters.failovers,
      moves: counters.moves,
      failedMoves: counters.failedMoves,
      probes: counters.probes,
      resentRequests: sum('resent'),
      crcMismatches: sum('crcMismatches'),
      serverRestarts: sum('serverRestarts'),
      outages,
      outage:
        outage === undefined
          ? null
          : {
              seconds: (SYSTEM_CLOCK.nowNs() - outage.sinceNs) / NS_PER_S,
              reason: outage.reason,
              isWrongDisk: outage.isWrongDisk,
            },
    };
  }

  /**
   * Memory that the disk writes from and reads into without a copy through the pool, in whole or in part.
   * Each connection registers it once; a request opens its own part to the server until it is answered. Writes that are
   * part of their request are copied there (`inlineWriteBytesMax`), and TCP copies as always. While a request is in
   * flight, do not change its part. Throws ERR_ROCE_OUT_OF_RANGE for less than a byte.
   */
  allocate(bytes: number): Buffer {
    checkWhole('bytes', bytes, 1, Number.MAX_SAFE_INTEGER);
    if (this.#device === undefined) return Buffer.alloc(bytes);
    const memory = this.#device.allocate(bytes);
    this.#own.add(memory);
    return memory;
  }

  /**
   * Releases memory of {@link allocate}; no request may use it. Until then the client keeps it. Throws
   * ERR_ROCE_INVALID_ARGUMENT for other memory. A client without a device has no such memory.
   */
  async free(memory: Uint8Array): Promise<void> {
    checkKind('memory', memory, ArrayBuffer.isView(memory), 'memory of allocate()');
    if (this.#device !== undefined) await this.#own.remove(memory);
  }

  /**
   * Breaks all RDMA connections as a failing NIC would: requests continue over TCP, and RDMA is retried after its
   * hold-down.
   */
  failover(): void {
    this.#connections.failRdma('a failover was requested');
  }

  /** Moves all sessions to a transport without a gap, in any state of the path. */
  async moveTo(transport: HostTransport): Promise<void> {
    checkOneOf('transport', transport, ['rdma', 'tcp']);
    return this.#connections.moveAll(transport);
  }

  /**
   * Takes RDMA out of use, so that its device can be serviced. When this resolves, nothing is registered on the device.
   */
  drainRdma(): Promise<void> {
    return this.#connections.drain();
  }

  /** Takes RDMA back into use: probes it first, then moves sessions gradually. */
  restoreRdma(): void {
    this.#connections.restore();
  }

  /** Flushes the disk and ends all sessions. */
  close(): Promise<void> {
    return this.disk.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function checkClientOptions(options: StorageClientOptions): void {
  const { host, port, device, tcp, disk, access, label, standby, sessions, inlineWriteBytesMax, giveUpNs } = options;
  if (typeof host !== 'function') checkWhole('port', port, 0, 65_535);
  checkKind(
    'device',
    device,
    device === undefined || typeof device?.createPd === 'function',
    'a device of openDevice()',
  );
  ifGiven(tcp, (value) => checkBoolean('tcp', value));
  ifGiven(disk, (value) => {
    if (typeof value !== 'string') checkWhole('disk', value, 0, U32 - 1);
  });
  ifGiven(access, (value) => checkOneOf('access', value, ['write', 'shared', 'read']));
  ifGiven(label, (value) => checkText('label', value));
  ifGiven(standby, (value) => checkBoolean('standby', value));
  ifGiven(sessions, (value) => checkWhole('sessions', value, 1, SESSIONS_MAX));
  ifGiven(inlineWriteBytesMax, checkInlineWriteBytesMax);
  ifGiven(giveUpNs, (value) => checkWhole('giveUpNs', value, 0, Number.MAX_SAFE_INTEGER));
  for (const name of ['onNotice', 'onEvent'] as const) {
    const value = options[name];
    checkKind(name, value, value === undefined || typeof value === 'function', 'a function');
  }
}

async function openSomewhere(connections: HostConnections, attempts: number): Promise<DiskReconnector> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await connections.open();
    } catch (error) {
      const isAway = error instanceof RoceError && error.code === 'ERR_ROCE_CONNECT';
      if (!isAway || attempt >= attempts) throw error;
    }
  }
}

async function dialRdma(
  device: RdmaDevice,
  { host, port }: ServerAddress,
  options: StorageClientOptions,
  { own, security }: { readonly own: OwnMemory; readonly security: ChannelSecurity | undefined },
): Promise<SkClientChannel> {
  const control = await dial(host, port, device.address, undefined, security);
  const pd = await device.createPd();
  try {
    const terms = { service: 'sk-rdma', flow: flowTerms(options), totalTimeout: SK_TOTAL_TIMEOUT } as const;
    return await connectChannel(control, { pd, init: SK_CLIENT_QP, exchange: exchangeAsClient, ...terms }, (parts) =>
      RdmaClientChannel.over(parts, POOL_BYTES_MAX, own),
    );
  } catch (error) {
    control.close();
    await pd.close();
    throw error;
  }
}

async function dialTcp({ host, port }: ServerAddress, security: ChannelSecurity | undefined): Promise<SkClientChannel> {
  return new TcpClientChannel(await dialStream(host, port, security));
}
