/** What a killed process leaves is settled while the disk is in use; what the table takes of memory is bounded. */

import { copyFile, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileDevice, type FileDeviceOptions } from '../../../src/storage-rpc/disk/file-device.js';
import { eventually } from '../../support/eventually.js';

const BLOCK = 4096;
const REGION = 64 << 20;
/** Two regions, of which copies do not take long. */
const SIZE = REGION + 16 * BLOCK;
const GIB = 2 ** 30;
const PAGE_BYTES = 16 << 10;

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-recovery-'));
  path = join(folder, 'disk');
});
afterEach(() => rm(folder, { recursive: true }));

/** The disk as a process finds it whose predecessor was killed now. */
async function heirOf(options: Partial<FileDeviceOptions> = {}): Promise<FileDevice> {
  const copy = join(folder, 'copy');
  await copyFile(path, copy);
  await copyFile(`${path}.crc32c`, `${copy}.crc32c`);
  return FileDevice.open({ path: copy, ...options });
}

async function byteAt(disk: FileDevice, offset: number): Promise<number> {
  const bytes = Buffer.alloc(BLOCK);
  await disk.read(offset, BLOCK, bytes);
  expect(bytes.every((byte) => byte === bytes[0])).toBe(true);
  return bytes[0];
}

test('after a kill only regions that were being written are checked, in the background, and the outcome is kept', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  for (const byte of [1, 2]) {
    await disk.write(5 * BLOCK, Buffer.alloc(3 * BLOCK, byte));
    await disk.write(REGION, Buffer.alloc(BLOCK, byte));
  }
  const notices: string[] = [];
  const heir = await heirOf({ onNotice: (notice) => notices.push(notice) });
  await eventually(() => heir.unsettledRegions === 0);
  await eventually(() => notices.length > 0);
  expect(notices).toEqual([expect.stringContaining('2 regions, 4 open blocks, none is damaged')]);
  expect([await byteAt(heir, 6 * BLOCK), await byteAt(heir, REGION)]).toEqual([2, 2]);
  // Killed again, without a close: there is nothing left to check.
  const copy = join(folder, 'copy');
  await copyFile(copy, join(folder, 'third'));
  await copyFile(`${copy}.crc32c`, join(folder, 'third.crc32c'));
  await heir.close();
  const third = await FileDevice.open({ path: join(folder, 'third'), onNotice: (notice) => notices.push(notice) });
  expect(third.unsettledRegions).toBe(0);
  expect(await byteAt(third, 6 * BLOCK)).toBe(2);
  await third.close();
  expect(notices).toHaveLength(1);
  await disk.close();
});

test('a block that kept its old content is served, written and closed as any other, settled or not', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(4 * BLOCK, 1));
  const before = await readFile(path);
  await disk.write(0, Buffer.alloc(4 * BLOCK, 2));
  await writeFile(path, before); // The checksums are of the second write, the data of the first.
  const heir = await heirOf();
  // Not settled yet: a write must not lose the only value that the block matches before it is written.
  await Promise.all([heir.write(BLOCK + 1, Buffer.alloc(1, 9)), heir.write(2 * BLOCK, Buffer.alloc(BLOCK, 3))]);
  expect(await byteAt(heir, 0)).toBe(1);
  await eventually(() => heir.unsettledRegions === 0);
  await heir.close();
  const again = await FileDevice.open({ path: join(folder, 'copy') });
  expect(again.unsettledRegions).toBe(0);
  expect([await byteAt(again, 0), await byteAt(again, 2 * BLOCK), await byteAt(again, 3 * BLOCK)]).toEqual([1, 3, 1]);
  await again.close();
  await disk.close();
});

test('a clean end leaves nothing to check', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(BLOCK, 1));
  await disk.write(0, Buffer.alloc(BLOCK, 2));
  await disk.close();
  const again = await FileDevice.open({ path });
  expect(again.unsettledRegions).toBe(0);
  expect(await byteAt(again, 0)).toBe(2);
  await again.close();
});

test('a region at rest has its mark taken back after 64 syncs, one in use keeps it', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(BLOCK, 1));
  for (let i = 0; i < 130; i++) {
    await disk.write(REGION, Buffer.alloc(BLOCK, i));
    await disk.flush();
  }
  const notices: string[] = [];
  const heir = await heirOf({ onNotice: (notice) => notices.push(notice) });
  await eventually(() => notices.length > 0);
  expect(notices).toEqual([expect.stringContaining(': 1 regions,')]);
  await heir.close();
  await disk.close();
});

test('the values that a write leaves in the table are of its place: the same bytes elsewhere have others', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: REGION });
  await disk.write(0, Buffer.alloc(4 * BLOCK, 7));
  await disk.close();
  // A piece of the table, written where it does not belong: block 1 gets the values of block 9, whose bytes are the same.
  const again = await FileDevice.open({ path });
  await again.write(9 * BLOCK, Buffer.alloc(BLOCK, 7));
  await again.close();
  const sums = await open(`${path}.crc32c`, 'r+');
  const table = 8192 + (1 << 20);
  const entry = Buffer.alloc(8);
  await sums.read(entry, 0, 8, table + 9 * 8);
  await sums.write(entry, 0, 8, table + 8);
  await sums.close();
  const damaged = await FileDevice.open({ path });
  await expect(byteAt(damaged, BLOCK)).rejects.toMatchObject({ errno: 'EIO' });
  expect(await byteAt(damaged, 9 * BLOCK)).toBe(7);
  expect(await damaged.verify(0, REGION)).toEqual([BLOCK]);
  await damaged.close();
});

test('a table of many pages in a memory of two holds what a large memory holds', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: GIB, tableMemoryBytes: 2 * PAGE_BYTES });
  const offsets = Array.from({ length: 40 }, (_, i) => i * (24 << 20));
  await Promise.all(offsets.map((offset, i) => disk.write(offset, Buffer.alloc(2 * BLOCK, i + 1))));
  await disk.write(8 * REGION - BLOCK, Buffer.alloc(2 * BLOCK, 99)); // Over the border of two pages and regions.
  for (const [i, offset] of offsets.entries()) expect(await byteAt(disk, offset + BLOCK)).toBe(i + 1);
  expect(disk.tableMemoryBytes).toBeLessThanOrEqual(2 * PAGE_BYTES);
  await disk.trim(0, GIB / 2);
  const status = await disk.blockStatus(0, GIB);
  expect(status.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0)).toBe(GIB);
  expect(status[0]).toEqual({ lengthBytes: GIB / 2, hole: true, zero: true });
  expect(await byteAt(disk, offsets[0])).toBe(0);
  expect(await byteAt(disk, 8 * REGION)).toBe(99);
  expect(await disk.verify(8 * REGION, REGION)).toEqual([]);
  await disk.close();
});

test('16 TiB: made, opened, discarded and asked where its data is, in bounded memory', async (context) => {
  const sizeBytes = 16 * 2 ** 40 - REGION; // One region less than ext4 refuses.
  const disk = await FileDevice.open({ path, sizeBytes, tableMemoryBytes: 8 * PAGE_BYTES }).catch((error) => {
    context.skip(`the file system holds no file of 16 TiB: ${error.message}`);
    throw error;
  });
  await disk.trim(0, sizeBytes);
  await disk.write(sizeBytes - BLOCK, Buffer.alloc(BLOCK, 3));
  expect(await disk.blockStatus(0, sizeBytes)).toEqual([
    { lengthBytes: sizeBytes - BLOCK, hole: true, zero: true },
    { lengthBytes: BLOCK, hole: false, zero: false },
  ]);
  expect(disk.tableMemoryBytes).toBeLessThanOrEqual(8 * PAGE_BYTES);
  await disk.close();
  const again = await FileDevice.open({ path });
  expect(await byteAt(again, sizeBytes - BLOCK)).toBe(3);
  await again.close();
});
