import { randomInt } from 'node:crypto';
import {
  type Connection,
  type ConnectOptions,
  connect,
  type Listener,
  type ListenOptions,
  listen,
  serveEach,
} from 'rocev2/internal/cm';
import {
  checkKind,
  checkOneOf,
  checkOptions,
  checkWhole,
  type OptionNames,
  RefusedPeers,
  RoceError,
} from 'rocev2/internal/core';
import { wallMs } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { KvClient } from './client.js';
import { type Codec, type CodecName, codecOf } from './codec.js';
import { layoutOf } from './geometry.js';
import { geometryFor, type StoreSizes } from './geometry-for.js';
import { KvOwner } from './owner.js';
import { SnapshotFile } from './snapshot-file.js';
import { restore, SnapshotKeeper } from './snapshot-keeper.js';
import { type Eviction, KvStore } from './store.js';

/** Both sides need little: long values are read, not sent. */
const CONNECTION = { messageBytesMax: 8192, receiveDepth: 16 } as const;
const READERS = 1024;
const READERS_MAX = 65_536;
const U32 = 2 ** 32;
const TIMER_MS_MAX = 2 ** 31 - 1;
export const RECONNECT_MS_MAX = TIMER_MS_MAX;
const SNAPSHOT_EVERY_MS = 30_000;

/** Options of {@link serveKv}. */
export interface ServeKvOptions<V> extends StoreSizes {
  /**
   * Use an engine in a worker (`openDevice({engine: 'worker'})`): then readers are answered while this thread is busy.
   */
  readonly device: RdmaDevice;
  /** TCP port; 0 lets the system choose. */
  readonly port: number;
  /** TCP address, default the device's. */
  readonly host?: string | undefined;
  /** How values become bytes. Default `bytes`. */
  readonly codec?: CodecName | Codec<V> | undefined;
  /** What happens when the store is full. Default `lru`. */
  readonly eviction?: Eviction | undefined;
  /** Readers at a time, also from one address, 1 to 65,536. Default 1024. */
  readonly readersMax?: number | undefined;
  /**
   * Called with a line for the log: the first reader that was refused (further ones are only counted), and a snapshot
   * that was not saved.
   */
  readonly onNotice?: ((notice: string) => void) | undefined;
  /** Where values outlive their owner. Default: nowhere. */
  readonly snapshot?: SnapshotOptions | undefined;
}

/**
 * A file that has the entries of one moment. An owner begins with those of its last snapshot; what was written after it
 * is lost when the owner dies.
 */
export interface SnapshotOptions {
  /**
   * Used by this owner alone, which keeps it locked. It need not exist yet. It is replaced whole, through a file with
   * the suffix `.new`.
   */
  readonly file: string;
  /** Milliseconds between snapshots, while something changes, 1 to 2^31 - 1. Default 30,000. */
  readonly everyMs?: number | undefined;
}

/** Options of {@link openKv}. */
export interface OpenKvOptions<V> extends Pick<ConnectOptions, 'host' | 'port' | 'signal' | 'timeoutMs'> {
  /** Device of the reader. */
  readonly device: RdmaDevice;
  /** The codec of the owner. Default `bytes`. */
  readonly codec?: CodecName | Codec<V> | undefined;
  /**
   * After the connection has ended, calls try for this many milliseconds to reach the owner, or its successor at the
   * same address, 0 to 2^31 - 1. Default 0: they reject. Writes in flight reject in any case.
   */
  readonly reconnectMs?: number | undefined;
}

const SERVE_OPTIONS: OptionNames<ServeKvOptions<unknown>> = {
  device: true,
  port: true,
  host: true,
  codec: true,
  eviction: true,
  readersMax: true,
  onNotice: true,
  snapshot: true,
  bytes: true,
  entries: true,
  keyBytesMax: true,
  valueBytesMax: true,
  inlineBytes: true,
  graceMs: true,
};
const SNAPSHOT_OPTIONS: OptionNames<SnapshotOptions> = { file: true, everyMs: true };
const OPEN_OPTIONS: OptionNames<OpenKvOptions<unknown>> = {
  device: true,
  host: true,
  port: true,
  codec: true,
  reconnectMs: true,
  signal: true,
  timeoutMs: true,
};

/** A store that serves readers; made by {@link serveKv}. */
export class KvServer<V> extends KvOwner<V> {
  readonly #listener: Listener;
  readonly #snapshots: SnapshotKeeper | undefined;
  readonly #file: SnapshotFile | undefined;

  /** @internal */
  constructor(store: KvStore, codec: Codec<V>, { listener, device, snapshots, file }: ServerParts) {
    super(store, codec, device.clock);
    this.#listener = listener;
    this.#snapshots = snapshots;
    this.#file = file;
    snapshots?.start();
    void serveEach(listener, (connection) => this.add(connection));
  }

  /** TCP port that readers connect to. */
  get port(): number {
    return this.#listener.port;
  }

  /** Readers that were refused or did not connect in time. */
  get refusedReaders(): number {
    const { established: _, ...refused } = this.#listener.counters();
    return Object.values(refused).reduce((sum, count) => sum + count, 0);
  }

  /**
   * Writes a snapshot now, and resolves when it is durable: everything that was written before this call survives the
   * owner. Rejects with ERR_ROCE_IO, with ERR_ROCE_MISMATCH or ERR_ROCE_BUSY if the file is no longer this owner's, and
   * with ERR_ROCE_INVALID_STATE if the owner has no file for it.
   */
  async saveSnapshot(): Promise<void> {
    if (this.#snapshots === undefined)
      throw new RoceError(
        'ERR_ROCE_INVALID_STATE',
        'the owner has no snapshot',
        'pass `snapshot: { file }` to serveKv',
      );
    await this.#snapshots.save();
  }

  /**
   * Ends the store, its listener and the connections of all readers, and writes a last snapshot. Rejects with
   * ERR_ROCE_IO if that cannot be written.
   */
  override async close(): Promise<void> {
    await this.#listener.close();
    await super.close();
    try {
      await this.#snapshots?.close();
    } finally {
      await this.#file?.close();
    }
  }
}

interface ServerParts {
  readonly listener: Listener;
  readonly device: RdmaDevice;
  readonly snapshots: SnapshotKeeper | undefined;
  readonly file: SnapshotFile | undefined;
}

/**
 * Makes a store in memory of the device and serves it. It is empty, or has the entries of its snapshot. Rejects with
 * ERR_ROCE_OUT_OF_RANGE for impossible sizes, ERR_ROCE_UNKNOWN_NAME, and as `listen` does. Rejects with ERR_ROCE_IO for
 * a snapshot that cannot be read, ERR_ROCE_BUSY while another owner has it, ERR_ROCE_MALFORMED for a damaged one.
 * Rejects with ERR_ROCE_MISMATCH for a file that is not a snapshot or has another layout. Rejects with ERR_ROCE_LIMIT
 * or ERR_ROCE_OUT_OF_RANGE for a snapshot that is too large for the store.
 */
export async function serveKv<V = Uint8Array>(options: ServeKvOptions<V>): Promise<KvServer<V>> {
  checkOptions('serveKv', options, SERVE_OPTIONS);
  const { device, port, host, codec, eviction = 'lru', readersMax = READERS, snapshot, onNotice, ...sizes } = options;
  checkKind('device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
  checkWhole('readersMax', readersMax, 1, READERS_MAX);
  checkOneOf('eviction', eviction, ['lru', 'none']);
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
  const values = codecOf(codec);
  const file = snapshot === undefined ? undefined : snapshotFile(snapshot);
  const last = await file?.load();
  try {
    const geometry = geometryFor(sizes, last?.seed ?? randomInt(U32));
    const store = new KvStore({
      region: device.allocate(layoutOf(geometry).end),
      geometry,
      eviction,
      nowNs: () => device.clock.nowNs(),
      random: { u32: () => randomInt(U32) },
    });
    const listenOptions: ListenOptions = {
      ...CONNECTION,
      port,
      ...(host !== undefined && { host }),
      maxConnections: readersMax,
      maxConnectionsPerAddress: readersMax,
    };
    const { clock } = device;
    if (last !== undefined) await restore(store, last, { clock, wallMs });
    const everyMs = snapshot?.everyMs ?? SNAPSHOT_EVERY_MS;
    const snapshots = file && new SnapshotKeeper(store, { place: file, everyMs, clock, wallMs, onNotice });
    const listener = await listen(device, listenOptions);
    new RefusedPeers('a reader', onNotice).hear(listener);
    return new KvServer(store, values, { listener, device, snapshots, file });
  } catch (error) {
    await file?.close();
    throw error;
  }
}

function snapshotFile(options: SnapshotOptions): SnapshotFile {
  checkOptions('snapshot', options, SNAPSHOT_OPTIONS);
  const { file, everyMs = SNAPSHOT_EVERY_MS } = options;
  checkKind('snapshot.file', file, typeof file === 'string' && file !== '', 'a path');
  checkWhole('snapshot.everyMs', everyMs, 1, TIMER_MS_MAX);
  return new SnapshotFile(file);
}

/**
 * Opens the store of an owner. Rejects as `connect` does, and with ERR_ROCE_MISMATCH if the peer is not the owner of a
 * store, or its store has another layout.
 */
export async function openKv<V = Uint8Array>(options: OpenKvOptions<V>): Promise<KvClient<V>> {
  checkOptions('openKv', options, OPEN_OPTIONS);
  const { device, codec, reconnectMs = 0, ...target } = options;
  checkKind('device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
  checkWhole('reconnectMs', reconnectMs, 0, RECONNECT_MS_MAX);
  const values = codecOf(codec);
  const again = () => connectToOwner(device, target);
  const reconnection = reconnectMs > 0 ? { connect: again, forMs: reconnectMs } : undefined;
  return KvClient.over(await connect(device, { ...CONNECTION, ...target }), values, reconnection);
}

export function connectToOwner(
  device: RdmaDevice,
  { host, port }: Pick<ConnectOptions, 'host' | 'port'>,
): Promise<Connection> {
  return connect(device, { ...CONNECTION, host, port });
}
