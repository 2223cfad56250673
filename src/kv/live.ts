/** Stores on sockets: `serveKv` and `openKv`. */

import { randomInt } from 'node:crypto';
import { type ConnectOptions, connect, listen } from '../cm/listen-connect.js';
import type { Listener, ListenOptions } from '../cm/listener.js';
import { checkOneOf, checkOptions, checkWhole, type OptionNames } from '../core/arguments.js';
import type { RdmaDevice } from '../verbs/device.js';
import { KvClient } from './client.js';
import { type Codec, type CodecName, codecOf } from './codec.js';
import { placesOf } from './geometry.js';
import { geometryFor, type StoreSizes } from './geometry-for.js';
import { KvOwner } from './owner.js';
import { type Eviction, KvStore } from './store.js';

/** Both sides need little: long values are read, not sent. */
const CONNECTION = { messageBytesMax: 8192, receiveDepth: 16 } as const;
const U32 = 2 ** 32;

/** What {@link serveKv} takes. */
export interface ServeKvOptions<V> extends StoreSizes {
  /** Use an engine in a worker (`openDevice({engine: 'worker'})`): then readers are answered while this thread is busy. */
  readonly device: RdmaDevice;
  /** TCP port; 0 lets the system choose. */
  readonly port: number;
  /** TCP address, default the device's. */
  readonly host?: string;
  /** How values become bytes. Default `bytes`. */
  readonly codec?: CodecName | Codec<V>;
  /** What happens when the store is full. Default `lru`. */
  readonly eviction?: Eviction;
  /** Readers at a time. Default 1024. */
  readonly readersMax?: number;
}

/** What {@link openKv} takes. */
export interface OpenKvOptions<V> extends Pick<ConnectOptions, 'host' | 'port' | 'signal' | 'timeoutMs'> {
  /** Device of the reader. */
  readonly device: RdmaDevice;
  /** The codec of the owner. Default `bytes`. */
  readonly codec?: CodecName | Codec<V>;
  /**
   * When the connection has ended, calls try for so many milliseconds to reach the owner, or another one at its place, 0 to 2^31 - 1. Default 0: they reject.
   * Writes that were under way reject in any case.
   */
  readonly reconnectMs?: number;
}

const SERVE_OPTIONS: OptionNames<ServeKvOptions<unknown>> = {
  device: true,
  port: true,
  host: true,
  codec: true,
  eviction: true,
  readersMax: true,
  bytes: true,
  entries: true,
  keyBytesMax: true,
  valueBytesMax: true,
  inlineBytes: true,
  graceMs: true,
};
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

  /** @internal */
  constructor(store: KvStore, codec: Codec<V>, listener: Listener, device: RdmaDevice) {
    super(store, codec, device.clock);
    this.#listener = listener;
    void this.#serve();
  }

  /** TCP port that readers connect to. */
  get port(): number {
    return this.#listener.port;
  }

  async #serve(): Promise<void> {
    // A reader that fails harms nobody else.
    for await (const connection of this.#listener) this.add(connection).catch(() => connection.close());
  }

  /** Ends the store, its listener and the connections of all readers. */
  override async close(): Promise<void> {
    await this.#listener.close();
    await super.close();
  }
}

/**
 * Makes an empty store in memory of the device and serves it. Rejects with ERR_ROCE_OUT_OF_RANGE for sizes that are not possible, ERR_ROCE_UNKNOWN_NAME,
 * and as `listen` does.
 */
export async function serveKv<V = Uint8Array>(options: ServeKvOptions<V>): Promise<KvServer<V>> {
  checkOptions('serveKv', options, SERVE_OPTIONS);
  const { device, port, host, codec, eviction = 'lru', readersMax, ...sizes } = options;
  checkOneOf('eviction', eviction, ['lru', 'none']);
  const values = codecOf(codec);
  const geometry = geometryFor(sizes, randomInt(U32));
  const store = new KvStore({
    region: device.allocate(placesOf(geometry).end),
    geometry,
    eviction,
    nowNs: () => device.clock.nowNs(),
    random: { u32: () => randomInt(U32) },
  });
  const listenOptions: ListenOptions = {
    ...CONNECTION,
    port,
    ...(host !== undefined && { host }),
    ...(readersMax !== undefined && { maxConnections: readersMax, maxConnectionsPerAddress: readersMax }),
  };
  return new KvServer(store, values, await listen(device, listenOptions), device);
}

/**
 * Opens the store of an owner. Rejects as `connect` does, and with ERR_ROCE_MISMATCH if the peer is no owner of a store, or one with another layout.
 */
export async function openKv<V = Uint8Array>(options: OpenKvOptions<V>): Promise<KvClient<V>> {
  checkOptions('openKv', options, OPEN_OPTIONS);
  const { device, codec, reconnectMs = 0, ...target } = options;
  checkWhole('reconnectMs', reconnectMs, 0, 2 ** 31 - 1);
  const values = codecOf(codec);
  const { host, port } = target;
  const again = () => connect(device, { ...CONNECTION, host, port });
  const reconnection = reconnectMs > 0 ? { connect: again, forMs: reconnectMs } : undefined;
  return KvClient.over(await connect(device, { ...CONNECTION, ...target }), values, reconnection);
}
