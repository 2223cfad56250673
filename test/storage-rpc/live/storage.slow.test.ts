/** Server and client on real sockets of one process: the disk contract over both transports, failover and return under I/O, restart. */

import { afterEach, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { StorageClient, type StorageClientOptions } from '../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../src/storage-rpc/live/storage-server.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../contracts/block-device-contract.js';
import { eventually } from '../../support/eventually.js';

const HOST = '127.55.0.1';

interface Served {
  readonly server: StorageServer;
  readonly client: StorageClient;
  close(): Promise<void>;
}

let opened: Served | undefined;

async function serve(
  options: Partial<StorageClientOptions> & { rdma?: boolean; sizeBytes?: number } = {},
): Promise<Served> {
  const { rdma = true, sizeBytes = CONTRACT_DISK_BYTES, ...rest } = options;
  const serverDevice = await openDevice({ address: HOST, udpPort: 0 });
  const clientDevice = await openDevice({ address: HOST, udpPort: 0 });
  const disks = [new MemoryDevice(sizeBytes)];
  const server = await StorageServer.open({ disks, host: HOST, port: 0, device: serverDevice });
  const client = await StorageClient.connect({
    host: HOST,
    port: server.port,
    ...(rdma && { device: clientDevice }),
    ...rest,
  });
  opened = {
    server,
    client,
    close: async () => {
      await client.close();
      await server.close();
      await clientDevice.close();
      await serverDevice.close();
    },
  };
  return opened;
}

afterEach(async () => {
  await opened?.close();
  opened = undefined;
});

blockDeviceContract('a disk over RDMA', async () => (await serve()).client.disk);
blockDeviceContract('a disk over TCP', async () => (await serve({ rdma: false })).client.disk);
blockDeviceContract(
  'a disk of 1 MiB and 1,536 bytes over RDMA in four sessions',
  async () => (await serve({ sessions: 4, sizeBytes: CONTRACT_DISK_BYTES + 1536 })).client.disk,
);

test('fails over while it is used, and returns; what was written is there', async () => {
  const { client } = await serve({ sizeBytes: 16 << 20, path: { holdDownNs: 50e6, holdDownMaxNs: 200e6 } });
  let running = true;
  let rounds = 0;
  const worker = async (n: number) => {
    const into = Buffer.alloc(65_536);
    for (let i = 0; running; i++) {
      const data = Buffer.alloc(i % 2 === 0 ? 65_536 : 4096, (n + i) & 0xff);
      await client.disk.write(n * 65_536, data);
      await client.disk.read(n * 65_536, data.length, into);
      expect(into.subarray(0, data.length).equals(data)).toBe(true);
      rounds++;
    }
  };
  const workers = Array.from({ length: 16 }, (_, n) => worker(n));
  for (let i = 0; i < 5; i++) {
    client.failover();
    const before = rounds;
    const isBack = eventually(() => client.report.sessions.rdma > 0 && rounds >= before + 50);
    await Promise.race([isBack, ...workers]); // A worker ends only by failing.
  }
  running = false;
  await Promise.all(workers);
  expect(client.report).toMatchObject({ state: 'RDMA', failovers: 5, crcMismatches: 0 });
}, 60_000);

test('moves between transports by hand', async () => {
  const { client } = await serve();
  expect(client.report.sessions).toEqual({ rdma: 1, tcp: 0 });
  await client.moveTo('tcp');
  expect(client.report.sessions).toEqual({ rdma: 0, tcp: 1 });
  await client.disk.write(0, Buffer.alloc(4096, 7));
  await client.moveTo('rdma');
  const into = Buffer.alloc(4096);
  await client.disk.read(0, 4096, into);
  expect(into[0]).toBe(7);
  expect(client.report).toMatchObject({ failovers: 0, moves: 2, resentRequests: 0 });
});

test('a server that goes away and comes back on its port is found again', async () => {
  const disk = new MemoryDevice(1 << 20);
  const first = await StorageServer.open({ disks: [disk], host: HOST, port: 0 });
  const { port } = first;
  const client = await StorageClient.connect({ host: HOST, port });
  await client.disk.write(0, Buffer.alloc(4096, 1));
  await first.close();
  const write = client.disk.write(4096, Buffer.alloc(4096, 2));
  const second = await StorageServer.open({ disks: [disk], host: HOST, port });
  await write;
  expect(client.report).toMatchObject({ serverRestarts: 1 });
  await client.close();
  await second.close();
});

test('nobody there: says so', async () => {
  await expect(StorageClient.connect({ host: HOST, port: 1 })).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
});

test('after close the server has no connections, and all its buffers', async () => {
  const { server, client } = await serve();
  await client.disk.write(0, Buffer.alloc(1 << 20, 1));
  await client.close();
  await eventually(() => server.connections === 0);
  expect(server.pool?.inUse).toBe(0);
});
