/** What clients can make the server hold, and that none of them keeps the others from being served. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { eventually } from '../../support/eventually.js';
import { repetitions } from '../../support/repetitions.js';
import { ServedDisk } from './nbd-pair.js';
import { CMD, RawClient, request } from './raw-client.js';

const MIB = 1 << 20;

/** Does requests when it is told to, and knows how many it was given. */
class SlowDisk extends MemoryDevice {
  slow = false;
  reads = 0;
  readBytes = 0;
  underWay = 0;
  mostUnderWay = 0;
  #waiting: Array<() => void> = [];

  override async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    this.reads++;
    this.readBytes += length;
    this.underWay++;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    if (this.slow) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    await super.read(offset, length, into);
    this.underWay--;
  }

  /** Lets those that wait now go on. */
  step(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

let device: SlowDisk;
let disk: ServedDisk;
beforeEach(async () => {
  device = new SlowDisk(16 * MIB);
  await device.write(0, Buffer.alloc(16 * MIB, 1)); // Holes would be answered without data.
  disk = await ServedDisk.open(device);
});
afterEach(() => disk.close());

/** The value once it stays while the server greets ten clients more, one after another: it would have gone on with others as well. */
async function settled(value: () => number): Promise<number> {
  for (let last = -1, same = 0; same < 10; same = value() === last ? same + 1 : 0) {
    last = value();
    (await RawClient.connect(disk.path)).socket.destroy();
  }
  return value();
}

test('a client that does not fetch its replies is read from no more; when it does, all come', async () => {
  const client = await RawClient.inTransmission(disk.path);
  const count = repetitions(150, 400);
  client.socket.pause();
  client.send(...Array.from({ length: count }, (_, i) => request(CMD.READ, 0, MIB, { cookie: BigInt(i) })));
  const held = await settled(() => device.readBytes);
  expect(held).toBeGreaterThan(16 * MIB);
  expect(held).toBeLessThan(100 * MIB); // 32 MiB that the server holds, and what the socket has taken.
  const other = await RawClient.inTransmission(disk.path);
  other.send(request(CMD.READ, 0, 4096));
  expect((await other.reply()).errno).toBe(0);
  other.socket.destroy();
  client.socket.resume();
  const cookies = new Set<bigint>();
  for (let i = 0; i < count; i++) cookies.add((await client.reply()).cookie);
  expect(cookies.size).toBe(count);
  client.socket.destroy();
});

test('a client that sends more writes than may be under way waits in its own socket', async () => {
  const client = await RawClient.inTransmission(disk.path);
  device.slow = true;
  client.send(...Array.from({ length: 500 }, (_, i) => request(CMD.READ, 0, 512, { cookie: BigInt(i) })));
  expect(await settled(() => device.reads)).toBe(128);
  device.slow = false;
  device.step();
  for (let i = 0; i < 500; i++) await client.reply();
  expect(device.mostUnderWay).toBeLessThanOrEqual(128);
  client.socket.destroy();
});

test('several clients share the places at the disk, and all are served', async () => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => RawClient.inTransmission(disk.path)));
  device.slow = true;
  for (const client of clients) {
    client.send(...Array.from({ length: 100 }, (_, i) => request(CMD.READ, 512 * i, 512, { cookie: BigInt(i) })));
  }
  const stepping = setInterval(() => device.step(), 1); // timer: the pace of a slow disk
  await Promise.all(
    clients.map(async (client) => {
      const cookies = new Set<bigint>();
      for (let i = 0; i < 100; i++) cookies.add((await client.reply()).cookie);
      expect(cookies.size).toBe(100);
    }),
  );
  clearInterval(stepping);
  expect(device.mostUnderWay).toBe(128);
  for (const client of clients) client.socket.destroy();
});

test('a client that goes with 64 requests under way leaves its places to others', async () => {
  device.slow = true;
  for (let round = 0; round < 4; round++) {
    const client = await RawClient.inTransmission(disk.path);
    client.send(...Array.from({ length: 64 }, (_, i) => request(CMD.READ, 512 * i, 512)));
    await eventually(() => device.underWay === 64);
    client.socket.destroy();
    device.step();
    await eventually(() => device.underWay === 0);
  }
  device.slow = false;
  const next = await RawClient.inTransmission(disk.path);
  next.send(request(CMD.READ, 0, 512));
  expect((await next.reply()).errno).toBe(0);
  next.socket.destroy();
  await eventually(() => disk.server.clients === 0);
});
