/** Clients that ask for much and fetch nothing, or send half of what they announce: what they cost the server, and the others. */

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { FairQueue } from '../../../src/core/fair-queue.js';
import { SYSTEM_CLOCK } from '../../../src/driver/system-clock.js';
import { BlockDeviceError } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { BufferCache } from '../../../src/storage-rpc/nbd/buffer-cache.js';
import { NbdServer } from '../../../src/storage-rpc/nbd/server.js';
import { NbdServerConnection } from '../../../src/storage-rpc/nbd/server-connection.js';
import { eventually } from '../../support/eventually.js';
import { ServedDisk } from './nbd-pair.js';
import { CMD, RawClient, request } from './raw-client.js';

const FUA = 1;

const MIB = 1 << 20;
const closers: Array<() => Promise<unknown> | unknown> = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function socketPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-nbd-'));
  closers.push(() => rm(folder, { recursive: true }));
  return join(folder, 'socket');
}

async function disk(sizeBytes: number): Promise<MemoryDevice> {
  const device = new MemoryDevice(sizeBytes);
  await device.write(0, Buffer.alloc(sizeBytes, 1)); // Holes would be answered without data.
  return device;
}

test('63 clients that read 64 MiB each and fetch nothing hold less than the budget, keep nobody waiting, and leave nothing behind', async () => {
  const served = await ServedDisk.open(await disk(32 * MIB));
  const before = process.memoryUsage().arrayBuffers;
  closers.push(() => served.close());
  const hostile = await Promise.all(
    Array.from({ length: 63 }, async () => {
      const client = await RawClient.inTransmission(served.path);
      client.socket.pause();
      client.send(request(CMD.READ, 0, 32 * MIB), request(CMD.READ, 0, 32 * MIB));
      return client;
    }),
  );
  closers.push(() => hostile.forEach(({ socket }) => void socket.destroy()));
  const good = await RawClient.inTransmission(served.path);
  closers.push(() => good.socket.destroy());
  let most = 0;
  for (let i = 0; i < 200; i++) {
    good.send(request(CMD.READ, 512 * i, 512), request(CMD.WRITE, 512 * i, 512, { data: Buffer.alloc(512, 2) }));
    expect((await good.reply()).errno).toBe(0);
    expect((await good.reply()).errno).toBe(0);
    most = Math.max(most, served.server.heldBytes);
  }
  expect(most).toBeGreaterThan(64 * MIB);
  expect(most).toBeLessThanOrEqual(192 * MIB);
  for (const { socket } of hostile) socket.destroy();
  await eventually(() => served.server.heldBytes === 0);
  // At most 32 MiB stay for the requests that come next. No collector has to run.
  expect(process.memoryUsage().arrayBuffers).toBeLessThan(before + 33 * MIB);
  good.send(request(CMD.READ, 0, 2 * MIB));
  expect((await good.reply()).data.length).toBe(2 * MIB + 8); // More than its own share: the pool is free again.
});

/** Serves one request per round of the event loop, in the order of arrival, and counts bytes as a clock counts time. */
class MeteredDisk extends MemoryDevice {
  readonly #queue: Array<() => void> = [];
  servedBytes = 0;

  override read(_offset: number, length: number): Promise<void> {
    return this.#served(length);
  }

  override write(_offset: number, { length }: Uint8Array): Promise<void> {
    return this.#served(length);
  }

  #served(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#queue.push(() => {
        this.servedBytes += bytes;
        resolve();
      });
      if (this.#queue.length === 1) setImmediate(this.#serve);
    });
  }

  readonly #serve = (): void => {
    this.#queue[0]();
    this.#queue.shift();
    if (this.#queue.length > 0) setImmediate(this.#serve);
  };
}

test.each([
  ['READs of 256 KiB', () => Array.from({ length: 64 }, () => request(CMD.READ, 0, 256 << 10))],
  ['WRITEs of 4 MiB', () => [request(CMD.WRITE, 0, 4 * MIB), Buffer.alloc(4 * MIB)]],
])('short READs wait for few bytes of 12 clients that send %s to a saturated disk', async (_, hostileRequests) => {
  const device = new MeteredDisk(32 * MIB);
  const served = await ServedDisk.open(device);
  closers.push(() => served.close());
  const bytes = Buffer.concat(hostileRequests());
  const hostile = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const client = await RawClient.inTransmission(served.path);
      client.socket.pause();
      client.send(bytes);
      return client;
    }),
  );
  closers.push(() => hostile.forEach(({ socket }) => void socket.destroy()));
  const good = await RawClient.inTransmission(served.path);
  closers.push(() => good.socket.destroy());
  await eventually(() => device.servedBytes > MIB);
  let most = 0;
  for (let i = 0; i < 20; i++) {
    const before = device.servedBytes;
    good.send(request(CMD.READ, 512 * i, 512));
    expect((await good.reply(512)).errno).toBe(0);
    most = Math.max(most, device.servedBytes - before);
  }
  // 2 MiB are at the disk; the rest is served while the request and its reply are in sockets.
  expect(most).toBeLessThan(6 * MIB);
});

test('clients that do not finish their WRITEs take no place at the disk from others', async () => {
  const served = await ServedDisk.open(await disk(MIB), { clientsMax: 200 });
  closers.push(() => served.close());
  const hostile = await Promise.all(
    Array.from({ length: 150 }, async () => {
      const client = await RawClient.inTransmission(served.path);
      client.send(request(CMD.WRITE, 0, 4096), Buffer.alloc(1000));
      return client;
    }),
  );
  closers.push(() => hostile.forEach(({ socket }) => void socket.destroy()));
  await eventually(() => served.server.heldBytes >= 128 * 4096);
  const good = await RawClient.inTransmission(served.path);
  closers.push(() => good.socket.destroy());
  good.send(request(CMD.READ, 0, 512), request(CMD.WRITE, 0, 512, { data: Buffer.alloc(512, 2) }));
  expect((await good.reply(512)).errno).toBe(0);
  expect((await good.reply()).errno).toBe(0);
});

test.each(['simple', 'structured'] as const)(
  'READs of 8 MiB are answered while others hold all memory and fetch nothing (%s replies)',
  async (form) => {
    const device = await disk(32 * MIB);
    const pattern = Buffer.alloc(8 * MIB);
    for (let i = 0; i < pattern.length; i += 4096) pattern.writeUInt32BE(i + 1, i);
    await device.write(0, pattern);
    const served = await ServedDisk.open(device);
    closers.push(() => served.close());
    const hostile = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = await RawClient.inTransmission(served.path, { structured: form === 'structured' });
        client.socket.pause();
        client.send(request(CMD.READ, 0, 32 * MIB), request(CMD.READ, 0, 32 * MIB));
        return client;
      }),
    );
    closers.push(() => hostile.forEach(({ socket }) => void socket.destroy()));
    await eventually(() => served.server.heldBytes >= 124 * MIB);
    const good = await RawClient.inTransmission(served.path, { structured: form === 'structured' });
    closers.push(() => good.socket.destroy());
    const read = () => (form === 'simple' ? good.reply(8 * MIB) : good.wholeRead(8 * MIB));
    good.send(request(CMD.READ, 0, 8 * MIB, { cookie: 1n }), request(CMD.FLUSH, 0, 0, { cookie: 2n }));
    const [first, flush] = [await read(), await good.reply()];
    expect([first.cookie, flush.cookie]).toEqual([1n, 2n]);
    expect(first.data.equals(pattern)).toBe(true);
    expect(served.server.counters.timedOut).toBe(0);
    // A part in the middle cannot be read: an error, and the connection is still in step.
    const readPart = device.read.bind(device);
    device.read = (offset, length, into) =>
      offset >= 3 * MIB
        ? Promise.reject(new BlockDeviceError('EIO', 'a damaged block'))
        : readPart(offset, length, into);
    good.send(request(CMD.READ, 0, 8 * MIB), request(CMD.READ, 0, 512));
    expect(form === 'simple' ? (await good.reply()).errno : (await good.wholeRead(8 * MIB)).errno).toBe(5);
    expect((await good.reply(512)).errno).toBe(0);
    expect(served.server.heldBytes).toBeLessThanOrEqual(192 * MIB);
  },
);

/** A server on a Unix socket with a budget of its own, whose clients are stuck after 50 ms. */
async function smallServer(bytesMax: number) {
  const path = await socketPath();
  const queue = new FairQueue({ clock: SYSTEM_CLOCK, requestsMax: 128, bytesMax, stuckNs: 50e6 });
  const counters = {
    connections: 0,
    refusedConnections: 0,
    tlsSessions: 0,
    tlsFailures: 0,
    turnedAway: 0,
    timedOut: 0,
    requests: 0,
    bytesRead: 0,
    bytesWritten: 0,
  };
  const device = await disk(16 * MIB);
  const exports = [{ name: 'disk0', description: '', sizeBytes: 16 * MIB, blockBytes: 1, device }];
  const turns = new FairQueue({ clock: SYSTEM_CLOCK, requestsMax: 8, bytesMax: Number.POSITIVE_INFINITY });
  const shared = { queue, turns, buffers: new BufferCache(), counters, clock: SYSTEM_CLOCK };
  const server: Server = createServer((socket) => void new NbdServerConnection(socket, exports, shared));
  await new Promise<void>((resolve) => server.listen({ path }, resolve));
  closers.push(
    () => server.close(),
    () => queue.close(),
  );
  return { path, queue, counters };
}

test('a client that does not fetch its reply is closed when others wait for its memory, and not before', async () => {
  const { path, queue, counters } = await smallServer(8 * MIB);
  const stuck = await RawClient.inTransmission(path);
  stuck.socket.pause();
  stuck.send(request(CMD.READ, 0, 8 * MIB));
  await eventually(() => queue.heldBytes === 8 * MIB);
  const good = await RawClient.inTransmission(path);
  closers.push(() => good.socket.destroy());
  for (let i = 0; i < 50; i++) {
    good.send(request(CMD.FLUSH, 0, 0)); // Needs no memory.
    expect((await good.reply()).errno).toBe(0);
  }
  expect(counters.timedOut).toBe(0);
  good.send(request(CMD.READ, 0, MIB));
  expect((await good.reply()).errno).toBe(0);
  expect(counters.timedOut).toBe(1);
  stuck.socket.resume();
  await stuck.hungUp();
});

test('clients that do not finish a WRITE hold a part of it, and are closed when others wait for that', async () => {
  const { path, queue, counters } = await smallServer(8 * MIB);
  const parts = Array.from({ length: 16 }, async () => {
    const client = await RawClient.inTransmission(path);
    client.send(request(CMD.WRITE, 0, 8 * MIB), Buffer.alloc(3 * MIB + 1000));
    return client;
  });
  const stuck = await Promise.all(parts);
  closers.push(() => stuck.forEach(({ socket }) => void socket.destroy()));
  await eventually(() => queue.heldBytes === 8 * MIB);
  const good = await RawClient.inTransmission(path);
  closers.push(() => good.socket.destroy());
  good.send(request(CMD.WRITE, 0, 4 * MIB), Buffer.alloc(4 * MIB));
  expect((await good.reply()).errno).toBe(0);
  expect(counters.timedOut).toBeGreaterThan(0);
});

test('63 clients that do not finish a WRITE of 32 MiB keep no other waiting, whatever it writes', async () => {
  const served = await ServedDisk.open(await disk(32 * MIB));
  closers.push(() => served.close());
  const hostile = await Promise.all(
    Array.from({ length: 62 }, async (_, i) => {
      const client = await RawClient.inTransmission(served.path);
      client.send(request(CMD.WRITE, 0, 32 * MIB), Buffer.alloc(i % 2 === 0 ? 1000 : 2 * MIB + 1000));
      return client;
    }),
  );
  closers.push(() => hostile.forEach(({ socket }) => void socket.destroy()));
  await eventually(() => served.server.heldBytes >= 31 * MIB);
  const good = await RawClient.inTransmission(served.path);
  closers.push(() => good.socket.destroy());
  for (let i = 0; i < 3; i++) {
    good.send(request(CMD.WRITE, 0, 8 * MIB), Buffer.alloc(8 * MIB, 7));
    expect((await good.reply()).errno).toBe(0);
  }
  expect(served.server.counters.timedOut).toBe(0); // It did not wait until others were closed.
  good.send(request(CMD.READ, 0, MIB));
  expect((await good.reply()).data.subarray(8).every((byte) => byte === 7)).toBe(true);
});

test('a WRITE in parts is one request, with one reply: whole, or with the first error', async () => {
  const device = await disk(16 * MIB);
  const served = await ServedDisk.open(device);
  closers.push(() => served.close());
  const client = await RawClient.inTransmission(served.path);
  closers.push(() => client.socket.destroy());
  const data = Buffer.alloc(5 * MIB + 4096);
  for (let i = 0; i < data.length; i += 512) data.writeUInt32BE(i, i);
  client.send(request(CMD.WRITE, 1024, data.length, { flags: FUA }), data);
  expect((await client.reply()).errno).toBe(0);
  const back = Buffer.alloc(data.length);
  await device.read(1024, back.length, back);
  expect(back.equals(data)).toBe(true);
  expect(served.server.counters.requests).toBe(1);
  // Past the end: nothing of it is written.
  client.send(request(CMD.WRITE, 14 * MIB, 4 * MIB), Buffer.alloc(4 * MIB, 9));
  expect((await client.reply()).errno).toBe(28);
  await device.read(14 * MIB, MIB, back);
  expect(back[0]).toBe(1);
  device.write = () => Promise.reject(new BlockDeviceError('ENOSPC', 'the store is full'));
  client.send(request(CMD.WRITE, 0, 4 * MIB), Buffer.alloc(4 * MIB, 9), request(CMD.FLUSH, 0, 0));
  expect([(await client.reply()).errno, (await client.reply()).errno].sort()).toEqual([0, 28]);
});

test('limits of a disk hold, and what cannot be one is refused', async () => {
  const path = await socketPath();
  const device = await disk(MIB);
  const options = { listen: { path }, exportName: 'disk0', description: '', device };
  await expect(NbdServer.open({ ...options, limit: { iops: 0 } })).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
  });
  await expect(NbdServer.open({ ...options, memoryBytesMax: 5 })).rejects.toThrow('memoryBytesMax');
  const server = await NbdServer.open({ ...options, limit: { iops: 200 } });
  closers.push(() => server.close());
  const client = await RawClient.inTransmission(path);
  closers.push(() => client.socket.destroy());
  const begin = performance.now();
  client.send(...Array.from({ length: 60 }, () => request(CMD.READ, 0, 512)));
  for (let i = 0; i < 60; i++) await client.reply();
  expect(performance.now() - begin).toBeGreaterThan(200); // 10 at once, 50 at 5 ms each, timers that are late aside.
});
