/** Long writes travel as several requests under way at once: what is promised of a write holds for all of them together. */

import { expect, test, vi } from 'vitest';
import { BlockDeviceError } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { DISK_BYTES, pattern, Rig } from './rig.js';

const KIB = 1024;
const PART_BYTES = 256 * KIB;
const LONG_BYTES = 1024 * KIB;
const BEGIN = 2 * LONG_BYTES;

async function stored(rig: Rig, length = LONG_BYTES): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  await rig.disk.read(BEGIN, length, bytes);
  return bytes;
}

for (const transport of ['rdma', 'tcp'] as const) {
  test.each<[number, boolean, number[]]>([
    [256 * KIB, false, [256]],
    [300 * KIB, false, [256, 44]],
    [1024 * KIB, false, [256, 256, 256, 256]],
    [1024 * KIB, true, [1024]],
    [1028 * KIB, true, [1024, 4]],
    [2048 * KIB, false, [1024, 1024]],
  ])(`a write of %i bytes over ${transport}, durable: %o`, async (bytes, fua, rdmaParts) => {
    const parts = transport === 'tcp' && bytes <= LONG_BYTES ? [bytes / KIB] : rdmaParts;
    const disk = new MemoryDevice(DISK_BYTES);
    const rig = await Rig.create({ disk });
    const lengths: number[] = [];
    const write = disk.write.bind(disk);
    disk.write = async (offset, data) => {
      lengths.push(data.length / KIB);
      await write(offset, data);
    };
    const remote = rig.remoteDisk(await rig.connected(transport));
    await rig.until(remote.write(BEGIN, pattern(bytes, 1), { fua }));
    expect(lengths.toSorted((a, b) => b - a)).toEqual(parts);
    expect((await stored(rig, bytes)).equals(pattern(bytes, 1))).toBe(true);
  });
}

test('writes that are not alone are cut no finer than they have to be', async () => {
  const disk = new MemoryDevice(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const write = vi.spyOn(disk, 'write');
  const remote = rig.remoteDisk(await rig.connected('rdma'));
  const first = remote.write(0, pattern(LONG_BYTES, 1));
  const second = remote.write(LONG_BYTES, pattern(LONG_BYTES, 2));
  await rig.until(Promise.all([first, second]));
  const sizes = write.mock.calls.map(([, { length }]) => length / KIB);
  expect(sizes.toSorted((a, b) => a - b)).toEqual([256, 256, 256, 256, 1024]);
  await rig.until(remote.write(0, pattern(LONG_BYTES, 3)));
  expect(write.mock.calls.slice(5).map(([, { length }]) => length / KIB)).toEqual([256, 256, 256, 256]);
});

test('a flipped bit in any part of a long write is found, and that part alone is sent again', async () => {
  const rig = await Rig.create();
  const remote = rig.remoteDisk(await rig.connected('rdma'));
  const { server } = rig.rdma!;
  const { pull } = server;
  for (let part = 0; part < 8; part++) {
    let isFlipped = false;
    server.pull = async (request, into, from, length) => {
      await pull.call(server, request, into, from, length);
      const at = request.offset - BEGIN + from;
      if (isFlipped || at !== part * (PART_BYTES / 2)) return;
      isFlipped = true;
      into.bytes[from + 77 * part] ^= 1 << part;
    };
    const executed = rig.server.counters.executed;
    const data = pattern(LONG_BYTES, part);
    await rig.until(remote.write(BEGIN, data));
    expect(isFlipped).toBe(true);
    expect(rig.server.counters.crcMismatches).toBe(part + 1);
    expect(rig.server.counters.executed - executed).toBe(5); // The refused one counts.
    expect((await stored(rig)).equals(data)).toBe(true);
  }
});

test('a client that vanishes between the parts of a write has no answer to it, and no part is torn', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  const remote = rig.remoteDisk(session);
  const { write } = rig.disk;
  let parts = 0;
  rig.disk.write = async (...args) => {
    await write.apply(rig.disk, args);
    if (++parts === 1) rig.cut(); // Nothing passes from here on, in either direction.
  };
  let settled = false;
  const data = pattern(LONG_BYTES, 9);
  void remote.write(BEGIN, data).then(
    () => (settled = true),
    () => (settled = true),
  );
  await rig.pass(20e6);
  expect(settled).toBe(false);
  const bytes = await stored(rig);
  for (let at = 0; at < LONG_BYTES; at += PART_BYTES) {
    const part = bytes.subarray(at, at + PART_BYTES);
    const isWritten = part.equals(data.subarray(at, at + PART_BYTES));
    expect(isWritten || part.every((byte) => byte === 0)).toBe(true);
  }
  expect(parts).toBeGreaterThanOrEqual(1);
  expect(parts).toBeLessThan(4);
  await rig.until(session.end(new Error('the client is gone')));
});

test('a part that the disk refuses fails the write, once all parts have ended', async () => {
  const disk = new MemoryDevice(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const remote = rig.remoteDisk(await rig.connected('rdma'));
  const { write } = disk;
  let ended = 0;
  disk.write = async (offset, data) => {
    const failing = offset === BEGIN + PART_BYTES;
    await rig.sleep(failing ? 0 : 1e6);
    ended++;
    if (failing) throw new BlockDeviceError('EIO', 'a bad sector');
    await write.call(disk, offset, data);
  };
  await expect(rig.until(remote.write(BEGIN, pattern(LONG_BYTES, 2)))).rejects.toMatchObject({ errno: 'EIO' });
  expect(ended).toBe(4);
});

test('the NIC serves its doorbells after each part, so that it leaves while the next is made; other writes leave as they did', async () => {
  const rig = await Rig.create();
  const remote = rig.remoteDisk(await rig.connected('rdma'));
  const flush = vi.spyOn(rig.rdma!.clientParts.pd.device, 'flushDoorbells');
  await rig.until(remote.write(0, pattern(16 * KIB, 1)));
  await rig.until(remote.write(0, pattern(LONG_BYTES, 1), { fua: true }));
  expect(flush).toHaveBeenCalledTimes(0);
  await rig.until(remote.write(0, pattern(LONG_BYTES, 1)));
  expect(flush).toHaveBeenCalledTimes(4);
});
