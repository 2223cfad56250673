/** A client of a storage server, as commands use it. */

import { setTimeout as delay } from 'node:timers/promises';
import {
  flowOf,
  type Output,
  openStorageDevice,
  type RdmaOptions,
  resolveHost,
  secureFlagsOf,
  secureOf,
} from '@rocev2/command';
import { isStreamBackend } from '@rocev2/extents/internal';
import { formatHostPort, RoceError } from 'rocev2/internal/core';
import { type DiskAccess, type FindServer, StorageClient } from 'rocev2/internal/storage-rpc';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { clientPort } from '../transfer/endpoint.js';
import { type FollowedDisk, openFollowed } from './followed-disk.js';

/** A server that cannot be reached is tried again after so long. */
const RETRY_MS = 500;

/** `auto`: RDMA, and TCP while RDMA fails. */
export const TRANSPORTS = ['auto', 'rdma', 'tcp'] as const;
/** The transports that a client may use. */
export type Transport = (typeof TRANSPORTS)[number];

/** Options of commands that use a storage server's disk. */
export interface RemoteDiskOptions extends RdmaOptions {
  /** `auto`, or only one transport. */
  readonly transport: Transport;
  /** How long RDMA is not retried after its first failure. */
  readonly holdDown?: number;
  /** Requests fail after so long without a server, in nanoseconds; default: never. */
  readonly giveUp?: number;
  /** Name of the server's disk; default: its only one. */
  readonly disk?: string;
  /** What to do with it; default: to write, alone. */
  readonly access?: DiskAccess;
  /** Wait for as long as somebody else writes to it. */
  readonly standby?: boolean;
  /** UUID that the disk must have. */
  readonly uuid?: string;
}

/** A client with the device it runs on. */
export class ConnectedDisk implements AsyncDisposable {
  /** The client; its `disk` takes requests. */
  readonly client: StorageClient;
  /** Undefined if only TCP is used. */
  readonly device: RdmaDevice | undefined;
  readonly #followed: FollowedDisk | undefined;

  private constructor(
    /** The client; its `disk` takes requests. */
    client: StorageClient,
    device: RdmaDevice | undefined,
    followed?: FollowedDisk,
  ) {
    this.client = client;
    this.device = device;
    this.#followed = followed;
  }

  /**
   * Opens a device if RDMA may be used, and connects; `output` takes the client's notices. `names`: the server; several with commas, of which one has the disk; or a disk in a cluster,
   * which is waited for until somebody serves it, and can be reached. Rejects as `StorageClient.connect` and `openFollowed`.
   */
  static async connect(names: string, options: RemoteDiskOptions, output?: Output): Promise<ConnectedDisk> {
    if (!isStreamBackend(names) || output === undefined) {
      const hosts = await Promise.all(names.split(',').map(resolveHost));
      return ConnectedDisk.#connectTo(hosts, hosts[0], options, output);
    }
    const followed = await openFollowed(names, { transport: options.transport, ...secureFlagsOf(options) }, output);
    try {
      for (let told = ''; ; ) {
        const { host, port } = await followed.firstPlace();
        try {
          const { uuid = followed.uuid, ...rest } = options;
          const own = { ...rest, ...(uuid !== undefined && { uuid }) };
          const { client, device } = await ConnectedDisk.#connectTo(followed.find, host, own, output);
          return new ConnectedDisk(client, device, followed);
        } catch (error) {
          if (!(error instanceof RoceError) || error.code !== 'ERR_ROCE_CONNECT') throw error;
          const notice = `'${followed.name}' is said to be served at ${formatHostPort(host, port)}, and cannot be reached there: ${error.message}`;
          if (notice !== told) output.note(`${notice}; trying on (its server has --advertise for another address)`);
          told = notice;
          await delay(RETRY_MS, undefined, { signal: output.io.interrupted });
        }
      }
    } catch (error) {
      await followed[Symbol.asyncDispose]();
      throw error;
    }
  }

  static async #connectTo(
    host: readonly string[] | FindServer,
    first: string,
    options: RemoteDiskOptions,
    output: Output | undefined,
  ): Promise<ConnectedDisk> {
    const { transport, port, holdDown, giveUp, uuid, disk, access, standby } = options;
    const device = transport === 'tcp' ? undefined : await openStorageDevice(await clientPort(first, options), options);
    try {
      const client = await StorageClient.connect({
        host,
        port,
        ...flowOf(options),
        tcp: transport !== 'rdma',
        ...(device === undefined ? await secureOf(options) : { device }),
        ...(giveUp !== undefined && { giveUpNs: giveUp }),
        ...(uuid !== undefined && { uuid }),
        ...(disk !== undefined && { disk }),
        ...(access !== undefined && { access }),
        ...(standby !== undefined && { standby }),
        ...(output !== undefined && { onNotice: (notice: string) => output.note(notice) }),
        ...(holdDown !== undefined && { path: { holdDownNs: holdDown, holdDownMaxNs: holdDown } }),
      });
      return new ConnectedDisk(client, device);
    } catch (error) {
      await device?.close();
      throw error;
    }
  }

  /** Closes client and device. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.client.close();
    } finally {
      await this.#followed?.[Symbol.asyncDispose]();
      await this.device?.close(); // An open device keeps the process alive.
    }
  }
}
