/** A disk that grows at the storage server, under a gateway that runs: who connects sees the new size, who was connected keeps the old one. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { WatchedDisk } from '../../../src/storage-rpc/disk/watched-disk.js';
import { StorageClient } from '../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../src/storage-rpc/live/storage-server.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { NbdServer } from '../../../src/storage-rpc/nbd/server.js';

const HOST = '127.55.0.4';
const [SMALL, LARGE] = [1 << 20, 4 << 20];

test('NBD clients of a gateway: the next connection has the new size, the last one stays within the old', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-grown-'));
  try {
    await using server = await StorageServer.open({
      host: HOST,
      port: 0,
      namedDisks: [{ name: 'a', device: new MemoryDevice(SMALL) }],
    });
    await using client = await StorageClient.connect({ host: HOST, port: server.port, disk: 'a' });
    await using gateway = await NbdServer.open({
      listen: { path: join(folder, 'socket') },
      exportName: 'a',
      description: '',
      device: new WatchedDisk(client.disk, () => 0),
    });
    await using before = await NbdDevice.open(gateway.uri);
    await server.exchangeDisk('a', async () => new MemoryDevice(LARGE));
    await using after = await NbdDevice.open(gateway.uri);
    expect([before.sizeBytes, after.sizeBytes]).toEqual([SMALL, LARGE]);
    await after.write(LARGE - 4096, Buffer.alloc(4096, 7));
    const read = Buffer.alloc(4096);
    await after.read(LARGE - 4096, 4096, read);
    expect(read.every((byte) => byte === 7)).toBe(true);
    await expect(before.read(SMALL, 4096, read)).rejects.toMatchObject({ errno: 'EINVAL' });
  } finally {
    await rm(folder, { recursive: true });
  }
}, 60_000);
