/** A server on a Unix socket of its own, for tests. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlockDevice } from '../../../src/storage-rpc/disk/block-device.js';
import { NbdServer, type NbdServerOptions } from '../../../src/storage-rpc/nbd/server.js';

export class ServedDisk {
  readonly server: NbdServer;
  readonly path: string;
  readonly #folder: string;

  private constructor(server: NbdServer, folder: string, path: string) {
    this.server = server;
    this.#folder = folder;
    this.path = path;
  }

  static async open(device: BlockDevice, more: Partial<NbdServerOptions> = {}): Promise<ServedDisk> {
    const folder = await mkdtemp(join(tmpdir(), 'rocev2-nbd-'));
    const path = join(folder, 'socket');
    const options = { listen: { path }, exportName: 'disk0', description: 'for tests', device, ...more };
    try {
      return new ServedDisk(await NbdServer.open(options), folder, path);
    } catch (error) {
      await rm(folder, { recursive: true });
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.server.close();
    await rm(this.#folder, { recursive: true });
  }
}
