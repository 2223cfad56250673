/** A store that lost what was not flushed: every NBD client and connection hears of it, once, whoever flushes first. */

import { afterEach, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { StorageClient } from '../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../src/storage-rpc/live/storage-server.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { NbdServer } from '../../../src/storage-rpc/nbd/server.js';

const HOST = '127.0.1.5';
const BLOCK = Buffer.alloc(4096, 1);

/** A disk of which a test can say that it has lost what it had not synced. */
class MortalDisk extends MemoryDevice {
  override writeVerifier = 1n;
}

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const resource of opened.splice(0).reverse()) await resource[Symbol.asyncDispose]();
});

async function use<T extends AsyncDisposable>(resource: Promise<T>): Promise<T> {
  opened.push(await resource);
  return resource;
}

/** NBD clients of a gateway whose server dies when `before` is done, and starts anew, with another life of its store if `isLost`. */
async function gatewayWith(isLost: boolean, before: (clients: NbdDevice[]) => Promise<void>) {
  const disk = new MortalDisk(1 << 20);
  const first = await StorageServer.open({ disks: [disk], host: HOST, port: 0 });
  const { port } = first;
  const client = await use(StorageClient.connect({ host: HOST, port }));
  const options = { exportName: 'disk0', description: 'for tests', device: client.disk };
  const server = await use(NbdServer.open({ listen: { host: HOST, port: 0 }, ...options }));
  const connect = () => use(NbdDevice.open(server.uri));
  const clients = [await connect(), await connect(), await connect()];
  await before(clients);
  await first.close();
  if (isLost) disk.writeVerifier++;
  // Closed last: clients flush when they are closed.
  opened.unshift(await StorageServer.open({ disks: [disk], host: HOST, port }));
  await clients[0].read(0, 4096, Buffer.alloc(4096)); // The gateway has found the new server.
  return { clients, connect };
}

const outcomes = (clients: readonly NbdDevice[]) =>
  Promise.all(
    clients.map((client) =>
      client.flush().then(
        () => 'done',
        (error: { errno: string }) => error.errno,
      ),
    ),
  );

test('each of three connections is told once; who comes afterwards is not', async () => {
  const { clients, connect } = await gatewayWith(true, async ([a, b]) => {
    await a.write(0, BLOCK);
    await b.write(4096, BLOCK);
  });
  expect(await outcomes(clients.slice(0, 1))).toEqual(['EIO']);
  expect(await outcomes(clients.slice(1))).toEqual(['EIO', 'EIO']);
  expect(await outcomes([...clients, await connect()])).toEqual(['done', 'done', 'done', 'done']);
});

test('a loss that nobody has heard of is told to who comes next', async () => {
  const { clients, connect } = await gatewayWith(true, ([a]) => a.write(0, BLOCK));
  const late = await connect();
  expect(await outcomes([late])).toEqual(['EIO']);
  expect(await outcomes([late])).toEqual(['done']);
  expect(await outcomes(clients)).toEqual(['EIO', 'EIO', 'EIO']);
});

test('twins: a store that lives on, and one whose writes were flushed, fail nobody', async () => {
  const alive = await gatewayWith(false, ([a]) => a.write(0, BLOCK));
  expect(await outcomes(alive.clients)).toEqual(['done', 'done', 'done']);
  const flushed = await gatewayWith(true, async ([a, b]) => {
    await a.write(0, BLOCK);
    await b.flush();
  });
  expect(await outcomes(flushed.clients)).toEqual(['done', 'done', 'done']);
});
