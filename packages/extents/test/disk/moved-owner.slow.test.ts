/** A disk that another server takes over while the one that had it lives: who asks the manager follows it there and back, and notices nothing. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SYSTEM_CLOCK } from '../../../../src/driver/system-clock.js';
import { WatchedDisk } from '../../../../src/storage-rpc/disk/watched-disk.js';
import { type FindServer, ServerResolver } from '../../../../src/storage-rpc/live/server-resolver.js';
import { StorageClient } from '../../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../../src/storage-rpc/live/storage-server.js';
import type { RdmaDevice } from '../../../../src/verbs/device.js';
import { openDevice } from '../../../../src/verbs/open-device.js';
import { eventually } from '../../../../test/support/eventually.js';
import { repeated } from '../../../../test/support/repetitions.js';
import type { RpcError } from '../../../rpc/src/rpc-error.js';
import { StandbyDisk } from '../../src/disk/standby-disk.js';
import {
  type ExtentsClient,
  type ManagerServer,
  openExtents,
  type StreamDisk,
  serveManager,
  serveNode,
} from '../../src/index.js';

const MIB = 1 << 20;
const BLOCK = 4096;
const BLOCKS = (4 * MIB) / BLOCK;
const [FIRST, SECOND, CLIENT] = ['127.0.9.11', '127.0.9.12', '127.0.9.13'];

const closing: Array<() => unknown> = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.splice(0).reverse()) await close();
});

let folder: string;
let device: RdmaDevice;
let manager: ManagerServer;
let client: ExtentsClient;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-moved-'));
  closing.push(() => rm(folder, { recursive: true }));
  device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  closing.push(() => device.close());
  manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0, extentBytes: MIB });
  closing.push(() => manager.close());
  for (const name of ['a', 'b', 'c']) {
    const node = await serveNode({ device, folder: join(folder, name), manager: manager.address });
    closing.push(() => node.close());
  }
  client = await openExtents({ device, manager: manager.address });
  closing.push(() => client.close());
  await client.createDisk('vol', { sizeBytes: BLOCKS * BLOCK });
});

/** A server of the disk, as `rocev2 disk serve`. */
interface Served {
  readonly disk: StandbyDisk;
  readonly notices: string[];
  close(): Promise<void>;
}

/** Nodes, manager and servers share one event loop, and a lease that cannot be given back lasts 30 s. */
const PATIENCE = { limitMs: 120_000 };

const block = (number: number) => Buffer.alloc(BLOCK, `block ${number} `);

/** Owns the disk, as soon as the checkpoint of its last owner does not come between, as the command does. */
async function openOwned(owner: string, takeOver: boolean): Promise<StreamDisk> {
  for (;;) {
    try {
      return await client.openDisk('vol', { owner, takeOver });
    } catch (error) {
      if ((error as RpcError).remoteCode !== 'BUSY') throw error;
    }
  }
}

/** Follows the disk by the manager. */
const find: FindServer = async () => {
  const { address } = await client.diskOwner('vol');
  const [host, port] = address?.split(':') ?? [];
  return host === undefined ? undefined : { host, port: Number(port) };
};

describe.runIf(process.platform === 'linux').each(repeated(1, ['rdma and tcp', 'tcp'] as const))(
  'a disk that is taken over, over %s',
  { timeout: 180_000 },
  (transport) => {
    const deviceAt = async (address: string) => {
      const opened = await openDevice({ address, udpPort: 0 });
      closing.push(() => opened.close());
      return opened;
    };

    async function serve(host: string, takeOver = false): Promise<Served> {
      const notices: string[] = [];
      const owner = `server at ${host}`;
      const disk = new StandbyDisk(await openOwned(owner, takeOver), {
        clock: SYSTEM_CLOCK,
        retryMs: 100,
        reopen: async () => {
          const { owner: other } = await client.diskOwner('vol');
          return other === undefined || other === owner ? client.openDisk('vol', { owner }) : undefined;
        },
        onNotice: (notice) => notices.push(notice),
      });
      const watched = new WatchedDisk(disk, () => SYSTEM_CLOCK.nowNs()); // As with `--estats`.
      const own = transport === 'tcp' ? {} : { device: await deviceAt(host) };
      const server = await StorageServer.open({ disks: [watched], host, port: 0, ...own });
      await disk.serveAt({
        address: `${host}:${server.port}`,
        onOwnedAgain: () => server.renewDisk(watched),
      });
      let isClosed = false;
      const close = async () => {
        if (isClosed) return;
        isClosed = true;
        await server.close();
        await disk.close();
      };
      closing.push(close);
      return { disk, notices, close };
    }

    async function connect(host: string | FindServer, port = 0): Promise<StorageClient> {
      const own = transport === 'tcp' ? {} : { device: await deviceAt(CLIENT) };
      const connected = await StorageClient.connect({ host, port, ...own });
      closing.push(() => connected.close());
      return connected;
    }

    /** Writes and reads while `work` is done: what was acknowledged must read so. */
    async function during(storage: StorageClient, from: number, work: () => Promise<unknown>): Promise<number> {
      let isDone = false;
      let next = from;
      const use = async () => {
        while (!isDone && next < BLOCKS) {
          const number = next++;
          await storage.disk.write(number * BLOCK, block(number));
          const into = Buffer.alloc(BLOCK);
          await storage.disk.read(number * BLOCK, BLOCK, into);
          expect(into.equals(block(number))).toBe(true);
        }
      };
      const uses = [use(), use(), use(), use()];
      await Promise.all([
        work().finally(() => {
          isDone = true;
        }),
        ...uses,
      ]);
      return next;
    }

    async function check(storage: StorageClient, blocks: number): Promise<void> {
      const into = Buffer.alloc(blocks * BLOCK);
      for (let at = 0; at < into.length; at += MIB) {
        const bytes = Math.min(MIB, into.length - at);
        await storage.disk.read(at, bytes, into.subarray(at));
      }
      for (let number = 0; number < blocks; number++)
        expect(into.subarray(number * BLOCK, (number + 1) * BLOCK).equals(block(number)), `block ${number}`).toBe(true);
    }

    const ownerIs = (host: string) => eventually(async () => (await find())?.host === host, PATIENCE);

    it('is followed there while its first owner lives, and back when the second one ends, with a manager that is started anew', async () => {
      const first = await serve(FIRST);
      const storage = await connect(find);
      const sessions = transport === 'tcp' ? { rdma: 0, tcp: 1 } : { rdma: 1, tcp: 0 };
      expect(storage.report.sessions).toEqual(sessions);
      let second!: Served;
      let written = await during(storage, 0, async () => {
        await storage.disk.flush();
        second = await serve(SECOND, true);
        await eventually(() => first.notices.length > 0, PATIENCE);
      });
      expect(first.notices[0]).toMatch(/the disk 'vol' now has another owner: .*; waiting until it has no owner/);
      expect(await client.diskOwner('vol')).toMatchObject({ owner: `server at ${SECOND}` });
      const { streams } = await client.status();
      expect(streams.find(({ stream }) => stream === 'vol.disk-log')?.address).toContain(SECOND);
      const port = Number(manager.address.split(':')[1]);
      await manager.close();
      written = await during(storage, written, async () => {
        manager = await serveManager({ device, folder: join(folder, 'manager'), port, extentBytes: MIB });
        const opened = manager;
        closing.push(() => opened.close());
        // A lease that is not given back, because the last manager is still asked, lasts its 30 s.
        const answers = () =>
          client.status().then(
            () => true,
            () => false,
          );
        await eventually(answers, PATIENCE);
        await second.close();
        await ownerIs(FIRST);
      });
      written = await during(storage, written, async () => check(storage, Math.min(written, 64)));
      await eventually(() => first.notices.at(-1) === "the disk 'vol' is ours again", PATIENCE);
      await check(storage, written);
      expect(storage.report.serverRestarts).toBeGreaterThanOrEqual(2);
    });

    it('is an I/O error for whoever cannot follow', async () => {
      vi.spyOn(ServerResolver.prototype, 'canMove', 'get').mockReturnValue(false);
      await serve(FIRST);
      const storage = await connect(find);
      await storage.disk.write(0, block(0));
      const write = during(storage, 0, async () => {
        await serve(SECOND, true);
        await storage.disk.write(0, block(0));
      });
      await expect(write).rejects.toMatchObject({ errno: 'EIO' });
    });

    it('is not read any more at a server that has lost it and does not write, and is not found there', async () => {
      const first = await serve(FIRST);
      const { host, port } = (await find())!;
      const one = await connect(host, port); // It knows one server.
      await one.disk.write(0, block(0));
      await serve(SECOND, true);
      // It hears of it when it renews its lease.
      await eventually(() => first.disk.notOwner !== undefined, PATIENCE);
      await expect(one.disk.read(0, BLOCK, Buffer.alloc(BLOCK))).rejects.toMatchObject({ errno: 'EIO' });
      await expect(connect(async () => ({ host, port }))).rejects.toThrow('the storage server does not own the disk');
    });
  },
);
