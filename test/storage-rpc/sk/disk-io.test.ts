/** sK-RDMA end to end in virtual time: a remote disk over both transports. */

import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { pattern, Rig, readIo, writeIo } from './rig.js';

for (const transport of ['rdma', 'tcp'] as const) {
  test.each([1, 512, 4096, 4097, 8192, 8193, 65536, 300_001, 1 << 20])(
    `what is written over ${transport} is read back: %i bytes`,
    async (bytes) => {
      const rig = await Rig.create();
      const session = await rig.connected(transport);
      const data = pattern(bytes, 3);
      await rig.until(session.submit(writeIo(8192, data)));
      const into = Buffer.alloc(bytes);
      await rig.until(session.submit(readIo(8192, into)));
      expect(into.equals(data)).toBe(true);
      const stored = Buffer.alloc(bytes);
      await rig.disk.read(8192, bytes, stored);
      expect(stored.equals(data)).toBe(true);
    },
  );
}

test('many sizes at once, over a link that loses packets', async () => {
  const rig = await Rig.create({ faults: 'random=0.01', seed: 5 });
  const session = await rig.connected('rdma');
  const pieces = Array.from({ length: 200 }, (_, i) => pattern(1 + ((i * 7919) % 40_000), i));
  await rig.until(Promise.all(pieces.map((data, i) => session.submit(writeIo(i * 40_960, data)))));
  const back = pieces.map(({ length }) => Buffer.alloc(length));
  await rig.until(Promise.all(back.map((into, i) => session.submit(readIo(i * 40_960, into)))));
  back.forEach((bytes, i) => void expect(bytes.equals(pieces[i])).toBe(true));
});

test('a remote disk in very many runs is not asked for more of them than anybody is told', async () => {
  let asked = 0;
  class Striped extends MemoryDevice {
    override async blockStatus(_: number, length: number) {
      asked++;
      return Array.from({ length: length / 512 }, (_, i) => ({
        lengthBytes: 512,
        hole: i % 2 === 0,
        zero: i % 2 === 0,
      }));
    }
  }
  const rig = await Rig.create({ disk: new Striped(8 << 20) });
  const disk = rig.remoteDisk(await rig.connected('rdma'));
  const extents = await rig.until(disk.blockStatus(0, 8 << 20));
  expect([extents.length, asked]).toEqual([4096, 32]);
});

test('a disk that fails says so with its own error', async () => {
  const disk = new MemoryDevice(1 << 20);
  const rig = await Rig.create({ disk });
  const session = await rig.connected('rdma');
  await expect(rig.until(session.submit(writeIo(1 << 20, pattern(8192, 1))))).rejects.toMatchObject({
    errno: 'ENOSPC',
  });
  await expect(rig.until(session.submit(readIo(1 << 20, Buffer.alloc(512))))).rejects.toMatchObject({
    errno: 'EINVAL',
  });
  await rig.until(session.submit(readIo(0, Buffer.alloc(512))));
});
