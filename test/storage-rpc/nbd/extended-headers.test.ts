/** Extended headers, CACHE and FAST_ZERO: what a client may ask for, and what it must not. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlockDeviceError, type WriteZeroesOptions } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { ServedDisk } from './nbd-pair.js';
import { CMD, extendedRequest, RawClient, type Reply, request, u32, u64 } from './raw-client.js';

const GIB = 2 ** 30;
const SIZE = 16 * 1024 * GIB;
const EINVAL = 22;
const ENOSPC = 28;
const ENOTSUP = 95;
const FAST_ZERO = 16;
const NONE = 0;
const DATA = 1;
const HOLE = 2;
const ERROR = 0x8001;

/** A sparse disk of 16 TiB that notes what it was asked for. */
class NotingDisk extends MemoryDevice {
  readonly asked: string[] = [];
  isSlow = false;

  override async trim(offset: number, length: number): Promise<void> {
    this.asked.push(`trim ${offset} ${length}`);
    await super.trim(offset, length);
  }

  override async writeZeroes(offset: number, length: number, options: WriteZeroesOptions = {}): Promise<void> {
    this.asked.push(`zero ${offset} ${length}${options.fast === true ? ' fast' : ''}`);
    if (options.fast === true && this.isSlow) throw new BlockDeviceError('ENOTSUP', 'this is slow');
    await super.writeZeroes(offset, length);
  }

  async prefetch(offset: number, length: number): Promise<void> {
    this.asked.push(`prefetch ${offset} ${length}`);
  }
}

let device: NotingDisk;
let disk: ServedDisk;
let client: RawClient;
beforeEach(async () => {
  device = new NotingDisk(SIZE);
  disk = await ServedDisk.open(device);
  client = await RawClient.inTransmission(disk.path, { extended: true });
});
afterEach(async () => {
  client.socket.destroy();
  await disk.close();
});

async function ask(...args: Parameters<typeof extendedRequest>): Promise<Reply> {
  client.send(extendedRequest(...args));
  return client.reply();
}

function extentsOf({ type, data }: Reply): Array<[length: bigint, flags: bigint]> {
  expect([type, data.readUInt32BE(0), data.length]).toEqual([6, 1, 8 + 16 * data.readUInt32BE(4)]);
  return Array.from({ length: data.readUInt32BE(4) }, (_, i) => [
    data.readBigUInt64BE(8 + 16 * i),
    data.readBigUInt64BE(16 + 16 * i),
  ]);
}

describe('extended headers', () => {
  test('what was written is read; cookie and offset come back as they were', async () => {
    const data = Buffer.from(Uint8Array.from({ length: 5000 }, (_, i) => i % 251));
    const at = 9 * 1024 * GIB + 12_345;
    const cookie = 0xfedc_ba98_7654_3210n;
    expect(await ask(CMD.WRITE, at, data.length, { data, cookie })).toMatchObject({
      ...{ kind: 'extended', type: NONE, cookie, offset: BigInt(at) },
      data: Buffer.alloc(0),
    });
    const read = await ask(CMD.READ, at, data.length, { cookie });
    expect(read).toMatchObject({ type: DATA, cookie, offset: BigInt(at) });
    expect(read.data.readBigUInt64BE()).toBe(BigInt(at));
    expect(read.data.subarray(8).equals(data)).toBe(true);
    const hole = await ask(CMD.READ, 0, 65_536);
    expect([hole.type, hole.data.readUInt32BE(8)]).toEqual([HOLE, 65_536]);
    expect(await ask(CMD.FLUSH, 0, 0)).toMatchObject({ type: NONE, errno: 0 });
  });

  test('ranges of terabytes are one request, and reach the disk in parts', async () => {
    await ask(CMD.WRITE, 5 * GIB, 4, { data: Buffer.from('data') });
    expect((await ask(CMD.TRIM, 4096, SIZE - 4096)).errno).toBe(0);
    expect(device.asked.length).toBe(16 * 1024);
    expect((await ask(CMD.READ, 5 * GIB, 4)).type).toBe(HOLE);
    expect((await ask(CMD.WRITE_ZEROES, 0, 3 * GIB)).errno).toBe(0);
    expect(device.asked.slice(-3)).toEqual([0, 1, 2].map((i) => `zero ${i * GIB} ${GIB}`));
  });

  test('BLOCK_STATUS has extents of more than 4 GiB', async () => {
    expect(extentsOf(await ask(CMD.BLOCK_STATUS, 0, SIZE))).toEqual([[BigInt(64 * GIB), 3n]]);
    await ask(CMD.WRITE, 5 * GIB, 65_536, { data: Buffer.alloc(65_536, 1) });
    expect(extentsOf(await ask(CMD.BLOCK_STATUS, 0, 8 * GIB))).toEqual([
      [BigInt(5 * GIB), 3n],
      [65_536n, 0n],
      [BigInt(3 * GIB - 65_536), 3n],
    ]);
    expect(extentsOf(await ask(CMD.BLOCK_STATUS, 0, 8 * GIB, { flags: 8 }))).toEqual([[BigInt(5 * GIB), 3n]]);
  });

  test('BLOCK_STATUS may name its context, and no other, not twice, and not none', async () => {
    const named = (length: number, ...ids: number[]) => {
      const data = Buffer.concat([u64(length), ...ids.map(u32)]);
      return ask(CMD.BLOCK_STATUS, 0, data.length, { data });
    };
    expect(extentsOf(await named(6 * GIB, 1))).toEqual([[BigInt(6 * GIB), 3n]]);
    for (const ids of [[], [2], [1, 1], [1, 2], Array.from({ length: 1000 }, () => 1)]) {
      expect((await named(GIB, ...ids)).errno).toBe(EINVAL);
    }
    for (const bytes of [1, 7, 9, 13]) {
      expect((await ask(CMD.BLOCK_STATUS, 0, bytes, { data: Buffer.alloc(bytes) })).errno).toBe(EINVAL);
    }
    expect((await named(SIZE + 1, 1)).errno).toBe(EINVAL);
    expect((await ask(CMD.FLUSH, 0, 0)).errno).toBe(0);
  });

  test.each([
    ['WRITE without its data', CMD.WRITE, 0, 512, {}, EINVAL],
    ['READ with data', CMD.READ, 0, 512, { data: Buffer.alloc(512) }, EINVAL],
    ['TRIM with data', CMD.TRIM, 0, 100_000, { data: Buffer.alloc(100_000) }, EINVAL],
    ['an unknown command with data', 99, 0, 100, { data: Buffer.alloc(100) }, EINVAL],
    ['READ of 5 GiB', CMD.READ, 0, 5 * GIB, {}, EINVAL],
    ['TRIM of all that 64 bits can say', CMD.TRIM, 0, 2n ** 64n - 1n, {}, EINVAL],
    ['WRITE_ZEROES past the end', CMD.WRITE_ZEROES, SIZE - 512, 513, {}, ENOSPC],
    ['an offset that no number of ours holds', CMD.READ, 2n ** 63n + 1n, 1, {}, EINVAL],
  ])('%s is refused in words, and the next request is heard', async (_, type, offset, length, more, errno) => {
    const reply = await ask(type, offset, length, more);
    expect(reply).toMatchObject({ kind: 'extended', type: ERROR, errno, offset: BigInt(offset) });
    expect(reply.data.length).toBeGreaterThan(6);
    expect((await ask(CMD.FLUSH, 0, 0)).errno).toBe(0);
  });

  test('more data than the server ever takes, or a compact header, ends the connection', async () => {
    client.send(extendedRequest(CMD.WRITE, 0, 33 << 20, { flags: 32 }));
    await client.hungUp();
    const other = await RawClient.inTransmission(disk.path, { extended: true });
    other.send(request(CMD.FLUSH, 0, 0), Buffer.alloc(4));
    await other.hungUp();
    expect(disk.server.counters).toMatchObject({ refusedConnections: 2, requests: 0 });
  });

  test('an extended header without agreement ends the connection, and its flag is unknown', async () => {
    const compact = await RawClient.inTransmission(disk.path);
    compact.send(request(CMD.FLUSH, 0, 0, { flags: 32 }));
    expect((await compact.reply()).errno).toBe(EINVAL);
    compact.send(extendedRequest(CMD.FLUSH, 0, 0));
    await compact.hungUp();
  });

  test('our client agrees on them, and asks for terabytes at once', async () => {
    const far = await NbdDevice.open(disk.server.uri);
    const data = Buffer.alloc(3 << 20, 0x5a);
    await far.write(9 * 1024 * GIB, data, { fua: true });
    const back = Buffer.alloc(data.length);
    await far.read(9 * 1024 * GIB, back.length, back);
    expect(back.equals(data)).toBe(true);
    device.asked.length = 0;
    await far.trim(0, 8 * 1024 * GIB);
    expect(disk.server.counters.requests).toBe(1 + 1 + 8); // A request a TiB.
    const extents = await far.blockStatus(8 * 1024 * GIB, 2 * 1024 * GIB);
    expect(extents.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0)).toBe(2 * 1024 * GIB);
    expect(extents.filter(({ zero }) => !zero)).toEqual([{ lengthBytes: data.length, hole: false, zero: false }]);
    await far.close();
  });
});

describe('FAST_ZERO', () => {
  test('is passed on whole, and its refusal changes nothing', async () => {
    expect((await ask(CMD.WRITE_ZEROES, 0, SIZE, { flags: FAST_ZERO })).errno).toBe(0);
    expect(device.asked).toEqual([`zero 0 ${SIZE} fast`]);
    device.isSlow = true;
    expect((await ask(CMD.WRITE_ZEROES, 0, SIZE, { flags: FAST_ZERO })).errno).toBe(ENOTSUP);
    expect((await ask(CMD.WRITE_ZEROES, 0, 4096)).errno).toBe(0);
  });

  test.each([CMD.READ, CMD.TRIM, CMD.FLUSH, CMD.CACHE, CMD.BLOCK_STATUS])('is no flag of command %i', async (type) => {
    expect((await ask(type, 0, type === CMD.FLUSH ? 0 : 512, { flags: FAST_ZERO })).errno).toBe(EINVAL);
  });

  test('goes through our client to the disk', async () => {
    const far = await NbdDevice.open(disk.server.uri);
    await far.writeZeroes(0, GIB, { fast: true });
    expect(device.asked).toEqual([`zero 0 ${GIB} fast`]);
    device.isSlow = true;
    await expect(far.writeZeroes(0, GIB, { fast: true })).rejects.toMatchObject({ errno: 'ENOTSUP' });
    await expect(far.writeZeroes(0, 2 * 1024 * GIB, { fast: true })).rejects.toMatchObject({ errno: 'ENOTSUP' });
    expect(device.asked.length).toBe(2); // More than one request is refused here.
    await far.close();
  });
});

describe('CACHE', () => {
  test('tells the disk, for a bounded part of the range, and carries nothing', async () => {
    expect(await ask(CMD.CACHE, 4096, 8192)).toMatchObject({ type: NONE, errno: 0 });
    expect((await ask(CMD.CACHE, 0, SIZE)).errno).toBe(0);
    expect((await ask(CMD.CACHE, SIZE - 512, 513)).errno).toBe(EINVAL);
    expect(device.asked).toEqual(['prefetch 4096 8192', `prefetch 0 ${32 << 20}`]);
  });

  test('a disk that cannot prepare anything takes it, too', async () => {
    const plain = await ServedDisk.open(new MemoryDevice(1 << 20));
    const other = await RawClient.inTransmission(plain.path);
    other.send(request(CMD.CACHE, 0, 1 << 20));
    expect(await other.reply()).toMatchObject({ kind: 'simple', errno: 0 });
    other.socket.destroy();
    await plain.close();
  });

  test('goes through our client to the disk', async () => {
    const far = await NbdDevice.open(disk.server.uri);
    await far.prefetch(0, 4096);
    await expect(far.prefetch(SIZE, 1)).rejects.toMatchObject({ errno: 'EINVAL' });
    expect(device.asked).toEqual(['prefetch 0 4096']);
    await far.close();
  });
});
