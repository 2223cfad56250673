/** A disk that another server has next, as one over streams whose owner is gone: the client asks the servers in turn, over RDMA and over TCP. */

import { afterEach, describe, expect, test } from 'vitest';
import type { DiskIdentity } from '../../../src/storage-rpc/disk/disk-identity.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { StorageClient } from '../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../src/storage-rpc/live/storage-server.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { repeated } from '../../support/repetitions.js';

const [FIRST, SECOND, CLIENT] = ['127.0.9.1', '127.0.9.2', '127.0.9.3'];
const BLOCK = 4096;

/** One disk, and how many owners it has had. */
class OwnedDisk extends MemoryDevice {
  override identity: DiskIdentity = { uuid: '01234567-89ab-cdef-0123-456789abcdef', generation: 5, name: 'vol' };
}

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const resource of opened.splice(0).reverse()) await resource[Symbol.asyncDispose]();
});

async function use<T extends AsyncDisposable>(resource: Promise<T>): Promise<T> {
  opened.push(await resource);
  return resource;
}

const block = (value: number) => Buffer.alloc(BLOCK, value);

describe.runIf(process.platform === 'linux').each(repeated(1, ['rdma', 'tcp'] as const))(
  'a disk that moves, over %s',
  (transport) => {
    const deviceAt = (address: string) => use(openDevice({ address, udpPort: 0 }));

    async function serve(host: string, disk: OwnedDisk, port = 0): Promise<StorageServer> {
      const device = transport === 'rdma' ? { device: await deviceAt(host) } : {};
      return await use(StorageServer.open({ disks: [disk], host, port, ...device }));
    }

    async function clientOf(hosts: readonly string[], port: number, options: { giveUpNs?: number } = {}) {
      const own = transport === 'rdma' ? { device: await deviceAt(CLIENT), tcp: false } : {};
      return await use(StorageClient.connect({ host: hosts, port, ...own, ...options }));
    }

    async function content(client: StorageClient, blocks: number): Promise<number[]> {
      const into = Buffer.alloc(blocks * BLOCK);
      await client.disk.read(0, into.length, into);
      return Array.from({ length: blocks }, (_, k) => into[k * BLOCK]);
    }

    test('is followed to the next server and back, and nothing is lost', async () => {
      const disk = new OwnedDisk(1 << 20);
      const first = await serve(FIRST, disk);
      const { port } = first;
      const client = await clientOf([SECOND, FIRST], port); // Nobody is at the second one.
      await client.disk.write(0, block(1));
      await first.close();
      const write = client.disk.write(BLOCK, block(2)); // It has no server now.
      disk.identity = { ...disk.identity, generation: 6 };
      const second = await serve(SECOND, disk, port);
      await write;
      await second.close();
      const more = client.disk.write(2 * BLOCK, block(3));
      disk.identity = { ...disk.identity, generation: 7 };
      await serve(FIRST, disk, port);
      await more;
      expect(await content(client, 3)).toEqual([1, 2, 3]);
      expect(client.report).toMatchObject({ serverRestarts: 2, sessions: { [transport]: 1 } });
    });

    test('is not looked for at a server that was its owner before', async () => {
      const disk = new OwnedDisk(1 << 20);
      disk.identity = { ...disk.identity, generation: 6 };
      const second = await serve(SECOND, disk);
      const { port } = second;
      const old = new OwnedDisk(1 << 20);
      await serve(FIRST, old, port);
      const client = await clientOf([SECOND, FIRST], port);
      await client.disk.write(0, block(1));
      await second.close();
      const write = client.disk.write(BLOCK, block(2)); // The first server answers, and is refused.
      disk.identity = { ...disk.identity, generation: 7 };
      await serve(SECOND, disk, port);
      await write;
      expect(await content(client, 2)).toEqual([1, 2]);
      const untouched = Buffer.alloc(BLOCK, 9);
      await old.read(BLOCK, BLOCK, untouched);
      expect(untouched.every((byte) => byte === 0)).toBe(true);
    });

    test('is not found by a client that knows one server', async () => {
      const disk = new OwnedDisk(1 << 20);
      const first = await serve(FIRST, disk);
      const { port } = first;
      const client = await clientOf([FIRST], port, { giveUpNs: 1e9 });
      await client.disk.write(0, block(1));
      await first.close();
      await serve(SECOND, disk, port);
      await expect(client.disk.write(BLOCK, block(2))).rejects.toThrow(/the storage server is gone/);
    });
  },
);

test('one of no servers is refused', async () => {
  await expect(StorageClient.connect({ host: [], port: 1 })).rejects.toThrow(/host/);
});
