/** A client of a storage server, as commands use it. */

import { StorageClient } from '../../storage-rpc/live/storage-client.js';
import type { DiskAccess } from '../../storage-rpc/sk/disk-lease.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { resolveHost } from '../resolve-host.js';
import { secureOf } from '../secure-options.js';
import { clientPort } from '../transfer/endpoint.js';
import { flowOf, openStorageDevice, type RdmaOptions } from './rdma-options.js';

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

  private constructor(
    /** The client; its `disk` takes requests. */
    client: StorageClient,
    device: RdmaDevice | undefined,
  ) {
    this.client = client;
    this.device = device;
  }

  /** Opens a device if RDMA may be used, and connects; `onNotice` takes the client's notices. `names`: the server, or several with commas, of which one has the disk. Rejects as `StorageClient.connect`. */
  static async connect(
    names: string,
    options: RemoteDiskOptions,
    onNotice?: (notice: string) => void,
  ): Promise<ConnectedDisk> {
    const hosts = await Promise.all(names.split(',').map(resolveHost));
    const { transport, port, holdDown, giveUp, uuid, disk, access, standby } = options;
    const device =
      transport === 'tcp' ? undefined : await openStorageDevice(await clientPort(hosts[0], options), options);
    try {
      const client = await StorageClient.connect({
        host: hosts,
        port,
        ...flowOf(options),
        tcp: transport !== 'rdma',
        ...(device === undefined ? await secureOf(options) : { device }),
        ...(giveUp !== undefined && { giveUpNs: giveUp }),
        ...(uuid !== undefined && { uuid }),
        ...(disk !== undefined && { disk }),
        ...(access !== undefined && { access }),
        ...(standby !== undefined && { standby }),
        ...(onNotice !== undefined && { onNotice }),
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
      await this.device?.close(); // An open device keeps the process alive.
    }
  }
}
