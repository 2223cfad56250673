import { createServer, type Server, type Socket } from 'node:net';
import { peerAddress } from '../../cm/tcp-address.js';
import { checkObject, checkOptions, checkText, checkWhole, type OptionNames } from '../../core/arguments.js';
import { ConnectionLimiter } from '../../core/connection-limiter.js';
import { RoceError } from '../../core/errors.js';
import { FairQueue } from '../../core/fair-queue.js';
import { SYSTEM_CLOCK } from '../../driver/system-clock.js';
import type { BlockDevice } from '../disk/block-device.js';
import { checkDiskLimit, type DiskLimit, RateLimit } from '../fair/rate-limit.js';
import { BufferCache } from './buffer-cache.js';
import type { ServedExport } from './execute.js';
import type { SocketAddress } from './listen-address.js';
import { listenOn } from './listen-on.js';
import { STRING_BYTES_MAX } from './protocol/wire.js';
import { type NbdCounters, NbdServerConnection } from './server-connection.js';
import { type NbdTlsOptions, readTlsConfig, type TlsConfig } from './tls/server-tls.js';

/** Address, export and limits of an NBD server. */
export interface NbdServerOptions {
  /** Address to listen on: a Unix socket, or TCP. */
  readonly listen: SocketAddress;
  /** Name of the export; clients may also ask for the empty name. */
  readonly exportName: string;
  /** Description of the export, which clients may show. */
  readonly description: string;
  /** The disk. The caller closes it. */
  readonly device: BlockDevice;
  /** Clients can only read. Default: as the disk is. */
  readonly readOnly?: boolean | undefined;
  /** Limits of the disk, for all clients together. Default: unlimited. */
  readonly limit?: DiskLimit | undefined;
  /** Bytes of data that the requests of all clients hold together, 64 MiB and more. Default 192 MiB. */
  readonly memoryBytesMax?: number | undefined;
  /** Connections at a time, 1 to 1024; over TCP, one address has at most three quarters of them. Default 64. */
  readonly clientsMax?: number | undefined;
  /** TLS, by STARTTLS. Default: none, everything is sent in the clear. */
  readonly tls?: NbdTlsOptions | undefined;
}

const SERVER_OPTIONS: OptionNames<NbdServerOptions> = {
  listen: true,
  exportName: true,
  description: true,
  device: true,
  readOnly: true,
  limit: true,
  memoryBytesMax: true,
  clientsMax: true,
  tls: true,
};

const REQUESTS_MAX = 128;
/** Writes and parts of reads that are at the disk at a time, in bytes: a short read waits for no more. */
const TURN_BYTES_MAX = 2 << 20;
const MEMORY_BYTES_MIN = 64 << 20;
const MEMORY_BYTES_MAX = 192 << 20;
/** Clients still in the handshake are evicted first. */
const CLIENTS = 64;
const CLIENTS_MAX = 1024;
/**
 * Memory that each client always has, if all clients together have no more than half of all memory.
 */
const SHARE_BYTES = 1 << 20;
/** A client that does not fetch its replies is not waited for when the server ends. */
const FINISH_TIMEOUT_MS = 2_000;

/** A client cannot request a longer name: NBD protocol, section 'Values', string lengths. */
function checkNbdString(option: string, text: string): void {
  checkText(option, text);
  const bytes = Buffer.byteLength(text);
  if (bytes <= STRING_BYTES_MAX) return;
  const problem = `${option} has ${bytes} bytes, and NBD allows ${STRING_BYTES_MAX}`;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', problem, 'make it shorter');
}

/** A running NBD server. */
export class NbdServer implements AsyncDisposable {
  /** Totals of all clients. */
  readonly counters: NbdCounters = {
    connections: 0,
    refusedConnections: 0,
    tlsSessions: 0,
    tlsFailures: 0,
    turnedAway: 0,
    timedOut: 0,
    requests: 0,
    bytesRead: 0,
    bytesWritten: 0,
  };
  readonly #server: Server;
  readonly #exports: readonly ServedExport[];
  readonly #queue: FairQueue;
  readonly #turns = new FairQueue({ clock: SYSTEM_CLOCK, requestsMax: REQUESTS_MAX, bytesMax: TURN_BYTES_MAX });
  readonly #buffers = new BufferCache();
  readonly #connections = new Map<Socket, NbdServerConnection>();
  readonly #limiter: ConnectionLimiter<Socket>;
  readonly #tls: TlsConfig | undefined;

  private constructor(
    { device, exportName, description, listen, limit, memoryBytesMax, clientsMax = CLIENTS, ...rest }: NbdServerOptions,
    tls: TlsConfig | undefined,
  ) {
    this.#tls = tls;
    const { sizeBytes, blockBytes } = device;
    const memoryBytes = memoryBytesMax ?? MEMORY_BYTES_MAX;
    checkWhole('memoryBytesMax', memoryBytes, MEMORY_BYTES_MIN, Number.MAX_SAFE_INTEGER);
    checkWhole('clientsMax', clientsMax, 1, CLIENTS_MAX);
    if (limit !== undefined) checkDiskLimit(limit);
    checkNbdString('exportName', exportName);
    checkNbdString('description', description);
    this.#exports = [
      {
        name: exportName,
        description,
        sizeBytes,
        blockBytes,
        readOnly: rest.readOnly === true || device.readOnly === true,
        device,
        limit: limit && new RateLimit(limit),
      },
    ];
    const shareBytes = Math.min(SHARE_BYTES, Math.floor(memoryBytes / 2 / clientsMax));
    const bytesMax = memoryBytes - clientsMax * shareBytes;
    this.#queue = new FairQueue({ clock: SYSTEM_CLOCK, requestsMax: REQUESTS_MAX, bytesMax, shareBytes });
    this.#server = createServer((socket) => this.#accept(socket));
    const perAddress = 'path' in listen ? clientsMax : Math.ceil((clientsMax * 3) / 4);
    this.#limiter = new ConnectionLimiter<Socket>({
      quotas: [{ states: ['pending', 'admitted'], total: clientsMax, perAddress }],
      evict: (socket) => socket.destroy(),
    });
  }

  /**
   * Listens. Rejects with ERR_ROCE_IO if the address is in use, ERR_ROCE_UNKNOWN_NAME for an unknown option,
   * ERR_ROCE_OUT_OF_RANGE for an invalid limit or memory and for a text of more than 4096 bytes. Rejects as
   * {@link NbdTlsOptions} for certificates and keys that cannot be used. The caller closes the disk.
   */
  static async open(options: NbdServerOptions): Promise<NbdServer> {
    checkOptions('NbdServer.open', options, SERVER_OPTIONS);
    checkObject('listen', options.listen, '{ host, port } or { path }');
    checkObject('device', options.device, 'a BlockDevice');
    const server = new NbdServer(options, options.tls && (await readTlsConfig(options.tls)));
    try {
      await listenOn(server.#server, options.listen);
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      const hint = code === 'EADDRINUSE' ? 'another server uses the address' : undefined;
      throw new RoceError('ERR_ROCE_IO', `cannot listen: ${message}`, hint, { cause: error });
    }
    return server;
  }

  /** NBD URI of the export, in the format of libnbd and qemu. */
  get uri(): string {
    const address = this.#server.address();
    const name = this.#exports[0].name;
    const scheme = this.#tls === undefined ? 'nbd' : 'nbds';
    if (address === null) return '';
    if (typeof address === 'string') return `${scheme}+unix:///${name}?socket=${address}`;
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    return `${scheme}://${host}:${address.port}/${name}`;
  }

  /** Bytes of data that requests hold now, of all clients. */
  get heldBytes(): number {
    return this.#queue.heldBytes;
  }

  /** Number of connected clients. */
  get clients(): number {
    return this.#connections.size;
  }

  /** Accepts no more clients, answers the requests in flight, and closes the connections. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const connection of this.#connections.values()) connection.finish(FINISH_TIMEOUT_MS);
    await closed;
    this.#queue.close();
    this.#turns.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #accept(socket: Socket): void {
    this.counters.connections++;
    const isServed = () => this.#connections.get(socket)?.isServed === true;
    const isIn = this.#limiter.admit(socket, peerAddress(socket), isServed);
    this.counters.turnedAway = this.#limiter.turnedAway;
    if (!isIn) return;
    socket.once('close', () => this.#limiter.leave(socket));
    void this.#serve(socket);
  }

  async #serve(socket: Socket): Promise<void> {
    socket.on('error', noop);
    await this.#exports[0].device.refresh?.().catch(noop);
    socket.off('error', noop);
    if (socket.destroyed || !this.#server.listening) {
      socket.destroy();
      return;
    }
    const shared = {
      queue: this.#queue,
      turns: this.#turns,
      buffers: this.#buffers,
      counters: this.counters,
      clock: SYSTEM_CLOCK,
      tls: this.#tls,
    };
    // Every client must learn of writes lost before they were flushed.
    const exports = this.#exports.map((served) => {
      const { device } = served;
      return { ...served, sizeBytes: device.sizeBytes, device: device.view?.() ?? device };
    });
    this.#connections.set(socket, new NbdServerConnection(socket, exports, shared));
    socket.once('close', () => {
      this.#connections.delete(socket);
      if (this.#connections.size === 0) this.#buffers.clear();
    });
  }
}

function noop(): void {}
