/** Memory that a program has allocated: data moves from and to it in place, no piece of the pool is used, and the server reaches no other part of it. */

import { expect, test } from 'vitest';
import { BlockDeviceError } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { DISK_BYTES, pattern, Rig } from './rig.js';

const BYTES = 64 << 10;

async function rigWithMemory(options: Parameters<typeof Rig.create>[0] = {}) {
  const rig = await Rig.create(options);
  const memory = rig.pair.a.device.allocate(1 << 20);
  rig.own.add(memory);
  const session = await rig.connected('rdma');
  return { rig, memory, session, disk: rig.remoteDisk(session) };
}

test('requests in allocated memory use no piece of the pool; those in other memory do', async () => {
  const { rig, memory, disk } = await rigWithMemory();
  const data = pattern(BYTES, 1);
  const [out, back] = [memory.subarray(12_345, 12_345 + BYTES), memory.subarray(200_001, 200_001 + BYTES)];
  out.set(data);
  await rig.until(disk.write(4096, out));
  await rig.until(disk.read(4096, BYTES, back));
  expect(back.equals(data)).toBe(true);
  expect(rig.rdma!.client.pooledCalls).toBe(0);
  // What lies around it is as it was.
  const rest = Buffer.concat([
    memory.subarray(0, 12_345),
    memory.subarray(12_345 + BYTES, 200_001),
    memory.subarray(200_001 + BYTES),
  ]);
  expect(rest.every((byte) => byte === 0)).toBe(true);

  // The negative twin.
  const other = Buffer.alloc(BYTES);
  await rig.until(disk.write(4096, data));
  await rig.until(disk.read(4096, BYTES, other));
  expect(other.equals(data)).toBe(true);
  expect(rig.rdma!.client.pooledCalls).toBe(2);
});

test('many at once, cut into pieces, over a link that loses packets', async () => {
  const { rig, memory, disk } = await rigWithMemory({ faults: 'random=0.01', seed: 3 });
  const large = rig.pair.a.device.allocate(3 << 20);
  rig.own.add(large);
  const data = pattern(large.length, 4);
  large.set(data);
  await rig.until(disk.write(0, large));
  large.fill(0);
  await rig.until(disk.read(0, large.length, large));
  expect(large.equals(data)).toBe(true);
  const pieces = Array.from({ length: 100 }, (_, i) => memory.subarray(i * 10_000, i * 10_000 + 9_000));
  await rig.until(Promise.all(pieces.map((piece, i) => disk.read(i * 9_000, piece.length, piece))));
  pieces.forEach((piece, i) => void expect(piece.equals(data.subarray(i * 9_000, (i + 1) * 9_000))).toBe(true));
  expect(rig.rdma!.client.pooledCalls).toBe(0);
});

test('a connection that is lost and another one: registered anew, and over TCP copied', async () => {
  const { rig, memory, session, disk } = await rigWithMemory();
  const data = pattern(BYTES, 5);
  const piece = memory.subarray(0, BYTES);
  piece.set(data);
  await rig.until(disk.write(0, piece));
  for (const next of [() => rig.dialRdma(), async () => rig.dialTcp()]) {
    piece.fill(0);
    const read = disk.read(0, BYTES, piece);
    session.breakConnection('a test');
    await rig.until(rig.rdma!.client.close());
    await rig.until(session.resume(await next()));
    await rig.until(read);
    expect(piece.equals(data)).toBe(true);
  }
});

test('a request that fails at the end of the session fails when the server can reach its memory no more', async () => {
  class StuckDisk extends MemoryDevice {
    override read(): Promise<void> {
      return new Promise(() => {});
    }
  }
  const { rig, memory, session, disk } = await rigWithMemory({ disk: new StuckDisk(DISK_BYTES) });
  const { client } = rig.rdma!;
  const { close } = client;
  let isClosed = false;
  client.close = async () => {
    await close.call(client);
    isClosed = true;
  };
  const failed = disk.read(0, BYTES, memory.subarray(0, BYTES)).then(
    () => 'done',
    (error: BlockDeviceError) => [error.errno, isClosed],
  );
  await rig.pass(1e6);
  await rig.until(session.end(new BlockDeviceError('ESHUTDOWN', 'the end')));
  expect(await failed).toEqual(['ESHUTDOWN', true]);
});

test('memory that is given back is copied again, and only memory that was added can be', async () => {
  const { rig, memory, disk } = await rigWithMemory();
  const keys = () => rig.pair.a.host.nic.keys.size;
  const before = keys();
  await rig.until(disk.read(0, BYTES, memory.subarray(0, BYTES)));
  expect(keys()).toBeGreaterThan(before);
  await rig.until(rig.own.remove(memory));
  expect(keys()).toBe(before);
  await rig.until(disk.read(0, BYTES, memory.subarray(0, BYTES)));
  expect(rig.rdma!.client.pooledCalls).toBe(1);
  await expect(rig.own.remove(memory)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
});
