import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../contracts/block-device-contract.js';

blockDeviceContract('memory', async () => new MemoryDevice(CONTRACT_DISK_BYTES));

test('a disk of a tebibyte takes the space of what was written, and gives it back', async () => {
  const disk = new MemoryDevice(2 ** 40);
  await disk.write(2 ** 39, Buffer.alloc(4096, 1));
  expect(await disk.blockStatus(2 ** 39 - 65536, 3 * 65536)).toEqual([
    { lengthBytes: 65536, hole: true, zero: true },
    { lengthBytes: 65536, hole: false, zero: false },
    { lengthBytes: 65536, hole: true, zero: true },
  ]);
  await disk.trim(2 ** 39, 65536);
  expect(await disk.blockStatus(2 ** 39, 65536)).toEqual([{ lengthBytes: 65536, hole: true, zero: true }]);
});

test('bytes may lie anywhere, across pieces too', async () => {
  const disk = new MemoryDevice(CONTRACT_DISK_BYTES);
  const data = Buffer.from(Uint8Array.from({ length: 200_001 }, (_, i) => i * 31));
  await disk.write(12_345, data);
  await disk.writeZeroes(65_530, 17);
  data.fill(0, 65_530 - 12_345, 65_547 - 12_345);
  const read = Buffer.alloc(data.length);
  await disk.read(12_345, read.length, read);
  expect(read.equals(data)).toBe(true);
});
