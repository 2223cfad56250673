/** A cluster on sockets and files: three nodes, a manager, an owner and a reader, over RDMA on loopback. */

import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RdmaDevice } from '../../../src/verbs/device.js';
import { type DeviceOptions, openDevice } from '../../../src/verbs/open-device.js';
import { eventually } from '../../../test/support/eventually.js';
import {
  type ExtentsClient,
  type ExtentTransport,
  type ManagerServer,
  openExtents,
  serveManager,
  serveNode,
} from '../src/index.js';
import { Peers } from '../src/live/peers.js';

const CALL_MS = 20_000;
const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

let device: RdmaDevice;
let folder: string;
let manager: ManagerServer;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-extents-'));
  closing.push(() => rm(folder, { recursive: true }));
  device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  closing.push(() => device.close());
  manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0, extentBytes: 1 << 20 });
  closing.push(() => manager.close());
});

async function startNode(name: string, to = manager.address) {
  const node = await serveNode({ device, folder: join(folder, name), manager: to });
  closing.push(() => node.close());
  return node;
}

async function startCluster(): Promise<ExtentsClient> {
  for (const name of ['a', 'b', 'c']) await startNode(name);
  const client = await openExtents({ device, manager: manager.address });
  closing.push(() => client.close());
  return client;
}

async function readAll(client: ExtentsClient, stream: string, from = 0): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const { data } of client.read(stream, { from })) found.push(Buffer.from(data));
  return found;
}

describe('a cluster on sockets', () => {
  it('has each record on three nodes, and gives back the bytes in order, from any record on', async () => {
    const client = await startCluster();
    await client.createStream('log');
    const writer = await client.openStream('log');
    // A short record may arrive before the long one that was sent before it.
    const values = Array.from({ length: 24 }, (_, k) => Buffer.alloc(k % 2 === 0 ? 100_000 : k, k + 1));
    const locations = await Promise.all(values.map((value) => writer.append(value)));
    expect(writer.counters).toEqual({ appends: 24, failovers: 0, resent: 0 });
    const open = await readAll(client, 'log');
    expect(values.slice(0, open.length).every((value, k) => value.equals(open[k]))).toBe(true);
    await writer.close();
    expect(await readAll(client, 'log')).toEqual(values);
    expect(await readAll(client, 'log', 21)).toEqual(values.slice(21));
    const peers = Peers.of(device);
    closing.push(() => peers.close());
    const place = (await client.extents('log')).find(({ extent }) => extent === locations[1].extent)!;
    for (const replica of place.replicas) {
      const request = { extent: place.extent, offset: locations[1].offset, first: 0, count: 1 };
      const { data } = await peers.nodes.call(replica, 'read', request, CALL_MS);
      expect(Buffer.from(data).equals(values[1])).toBe(true);
    }
    const fence = (node: number, extent: number) =>
      peers.nodes.call({ ...place.replicas[0], node }, 'fence', { extent, epoch: 1 }, CALL_MS);
    await expect(fence(place.replicas[0].node, -1)).rejects.toThrow('no request to fence');
    await expect(fence(99, place.extent)).rejects.toThrow('is here now, and not node 99');
    const { nodes, nodesNeeded, extents, streams } = await client.status();
    expect(nodesNeeded).toBe(3);
    expect(nodes.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
    expect(extents).toMatchObject({ open: 0, underReplicated: 0, unavailable: 0 });
    expect(streams.map(({ stream }) => stream)).toEqual(['log']);
  }, 180_000); // On a busy machine its 24 appends at once, and all connections, take their time.

  it('has one owner of a stream at a time, and gives the space of a deleted one back', async () => {
    const client = await startCluster();
    await client.createStream('log');
    const first = await client.openStream('log', { owner: 'first' });
    await first.append(Buffer.from('1'));
    await expect(client.openStream('log')).rejects.toThrow("the stream 'log' belongs to first");
    await expect(client.deleteStream('log')).rejects.toThrow("the stream 'log' has an owner");
    const second = await client.openStream('log', { owner: 'second', takeOver: true });
    await expect(first.append(Buffer.from('2'))).rejects.toMatchObject({ remoteCode: 'FENCED' });
    await second.append(Buffer.from('3'));
    await second.close();
    expect((await readAll(client, 'log')).map(String)).toEqual(['1', '3']);
    await client.deleteStream('log');
    await expect(readAll(client, 'log')).rejects.toThrow("there is no stream 'log'");
    await eventually(async () => (await client.status()).nodes.every(({ usedBytes }) => usedBytes === 0));
  });

  it('says to who reads a stream that it was deleted meanwhile', async () => {
    const client = await startCluster();
    await client.createStream('log');
    const writer = await client.openStream('log');
    for (let k = 0; k < 3; k++) await writer.append(Buffer.alloc(700_000, k)); // Each in an extent of its own.
    await writer.close();
    const records = client.read('log');
    expect((await records.next()).value).toMatchObject({ number: 0 });
    // Nodes tell now and then what they use: what one says before it has told of the records is no sign that they have gone.
    const isUsed = async (used: boolean) => (await client.status()).nodes.every((node) => node.usedBytes > 0 === used);
    await eventually(() => isUsed(true));
    await client.deleteStream('log');
    await eventually(() => isUsed(false));
    await expect(records.next()).rejects.toThrow("the stream 'log' was deleted while it was read");
  });

  it('goes on where it was after all of it has been started anew', async () => {
    const client = await startCluster();
    await client.createStream('log');
    const writer = await client.openStream('log');
    await writer.append(Buffer.from('kept'));
    await writer.close();
    const { cluster } = await client.status();
    const port = Number(manager.address.split(':')[1]);
    for (const close of closing.splice(3).reverse()) await close();
    await manager.close();
    manager = await serveManager({ device, folder: join(folder, 'manager'), port });
    closing.push(() => manager.close());
    const again = await startCluster();
    expect((await again.status()).cluster).toBe(cluster);
    expect((await again.status()).nodes).toHaveLength(3);
    expect((await readAll(again, 'log')).map(String)).toEqual(['kept']);
  });

  it.each(['rdma', 'tcp'] as const)(
    'answers the first call after a manager was started anew, over %s',
    async (transport) => {
      const client = await openExtents({ device, manager: manager.address, transport });
      closing.push(() => client.close());
      const { cluster } = await client.status();
      const port = Number(manager.address.split(':')[1]);
      await manager.close();
      manager = await serveManager({ device, folder: join(folder, 'manager'), port });
      closing.push(() => manager.close());
      expect((await client.status()).cluster).toBe(cluster);
      // Who is away altogether is still said to be.
      await manager.close();
      await expect(client.status()).rejects.toThrow(`no manager answers at ${manager.address}`);
    },
  );

  it('has a node of a new folder wait for a manager that is started later', async () => {
    const port = Number(/\d+$/.exec(manager.address)![0]);
    await manager.close();
    let isJoined = false;
    const joining = startNode('early').then((node) => {
      isJoined = true;
      return node;
    });
    await expect(openExtents({ device, manager: manager.address })).rejects.toThrow(
      `no manager answers at ${manager.address} (start one with 'rocev2 extents manager --dir PATH')`,
    );
    expect(isJoined).toBe(false);
    manager = await serveManager({ device, folder: join(folder, 'manager'), port });
    closing.push(() => manager.close());
    expect((await joining).cluster).toBe((await manager.status()).cluster);
  });

  it('refuses folders that are in use, of another cluster, or somebody else’s', async () => {
    const node = await startNode('a');
    if (process.platform === 'linux') await expect(startNode('a')).rejects.toThrow('another process uses the folder');
    await node.close();
    await using other = await serveManager({ device, folder: join(folder, 'other'), port: 0 });
    await expect(startNode('a', other.address)).rejects.toThrow(
      `the disk of node 1 belongs to cluster ${node.cluster}, and this is ${(await other.status()).cluster}; name the manager of its cluster`,
    );
    await mkdir(join(folder, 'foreign'));
    await writeFile(join(folder, 'foreign', 'x.txt'), '');
    await expect(startNode('foreign')).rejects.toThrow("not that of an extent node: it has 'x.txt' (name an empty");
    await expect(serveManager({ device, folder: join(folder, 'a'), port: 0 })).rejects.toThrow('not that of a manager');
    const port = Number(/\d+$/.exec(manager.address)![0]);
    await expect(serveManager({ device, folder: join(folder, 'new'), port })).rejects.toThrow(
      /cannot listen on .*choose another port/,
    );
    expect(existsSync(join(folder, 'new'))).toBe(false);
    await expect(openExtents({ device, manager: '127.0.0.1:1' })).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    await expect(openExtents({ device, manager: 'nowhere' })).rejects.toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
  });

  it('refuses an old copy of a folder as often as it is tried', async () => {
    const start = async () => (await startNode('a')).close();
    await start();
    await cp(join(folder, 'a'), join(folder, 'copy'), { recursive: true });
    for (let k = 0; k < 3; k++) await start();
    for (let k = 0; k < 4; k++)
      await expect(startNode('copy')).rejects.toThrow(/node 1 (runs with the folder|is an older copy)/);
    await start(); // The folder itself is not old.
  });

  it('has a node whose folder is deleted say so, and be taken for dead', async () => {
    const node = await startNode('a');
    expect(node.readOnly).toBeUndefined();
    await rm(join(folder, 'a'), { recursive: true });
    await eventually(() => node.readOnly === 'its folder cannot be used: there is no such folder');
    await eventually(async () => (await manager.status()).nodes[0].silentMs > 1000);
  });

  it('is reached by TCP where RDMA connections cannot be made, and by TCP alone if that is asked for', async () => {
    await startCluster();
    const other = await openDevice({ address: '127.0.0.1', udpPort: 0 });
    closing.push(() => other.close());
    const client = await openExtents({ device: other, manager: manager.address, transport: 'tcp' });
    closing.push(() => client.close());
    await client.createStream('log');
    const writer = await client.openStream('log');
    const values = Array.from({ length: 5 }, (_, k) => Buffer.alloc(200_000, k + 1));
    await Promise.all(values.map((value) => writer.append(value)));
    await writer.close();
    expect(await readAll(client, 'log')).toEqual(values);
    expect(other.counters().tx_packets).toBe(0);
    const lost = await openDevice({ address: '127.0.0.1', udpPort: 0, loss: 'random=1' });
    closing.push(() => lost.close());
    const fallen = await openExtents({ device: lost, manager: manager.address });
    closing.push(() => fallen.close());
    expect(await readAll(fallen, 'log')).toEqual(values);
    expect(lost.counters().tx_packets).toBeGreaterThan(0); // It has tried.
  }, 180_000); // It waits for packets that never come, with each of its peers.

  it('protects what goes by TCP with the credentials of the device, and does not get around a refusal', async () => {
    const open = async (options: Pick<DeviceOptions, 'secure'>) => {
      const one = await openDevice({ address: '127.0.0.1', udpPort: 0, ...options });
      closing.push(() => one.close());
      return one;
    };
    const psk = (fill: number) => ({ secure: { psk: { identity: 'alice', key: Buffer.alloc(32, fill) } } });
    const guarded = await serveManager({ device: await open(psk(1)), folder: join(folder, 'guarded'), port: 0 });
    closing.push(() => guarded.close());
    const status = async (own: RdmaDevice, transport: ExtentTransport) => {
      await using client = await openExtents({ device: own, manager: guarded.address, transport });
      return (await client.status()).cluster;
    };
    const friend = await open(psk(1));
    expect(await status(friend, 'tcp')).toBe((await guarded.status()).cluster);
    expect(friend.counters().tx_packets).toBe(0);
    for (const stranger of [await open(psk(2)), await open({})])
      await expect(status(stranger, 'tcp')).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    await expect(status(await open({}), 'auto')).rejects.toThrow('packets have to be protected here');
    for (const transport of ['auto', 'tcp'] as const)
      await expect(status(await open(psk(2)), transport)).rejects.toThrow(/^no secure connection with .*the same key/);
  });
});
