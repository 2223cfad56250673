import { setTimeout as delay } from 'node:timers/promises';
import {
  flowOf,
  noDeviceForHttp,
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

const RETRY_MS = 500;

export const TRANSPORTS = ['auto', 'rdma', 'tcp'] as const;
export type DiskTransport = (typeof TRANSPORTS)[number];

export interface RemoteDiskOptions extends RdmaOptions {
  readonly transport: DiskTransport;
  readonly holdDown?: number;
  /** Requests fail after this time without a server, in nanoseconds; default: never. */
  readonly giveUp?: number;
  readonly disk?: string;
  readonly access?: DiskAccess;
  readonly standby?: boolean;
  readonly uuid?: string;
}

export class ConnectedDisk implements AsyncDisposable {
  readonly client: StorageClient;
  readonly device: RdmaDevice | undefined;
  readonly #followed: FollowedDisk | undefined;

  private constructor(client: StorageClient, device: RdmaDevice | undefined, followed?: FollowedDisk) {
    this.client = client;
    this.device = device;
    this.#followed = followed;
  }

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
    if (transport === 'tcp' && options.estatsHttp !== undefined) throw noDeviceForHttp();
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

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.client.close();
    } finally {
      await this.#followed?.[Symbol.asyncDispose]();
      await this.device?.close();
    }
  }
}
