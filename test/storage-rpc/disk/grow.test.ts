/** A disk in a file that is made larger: it keeps what it has, its new part is blank, and cut short it has one of its two sizes. */

import { mkdtemp, open, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readHeader, writeHeader } from '../../../src/storage-rpc/disk/checksum-format.js';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { HAS_KOFFI } from '../../support/has-koffi.js';

const SIZE = 256 << 10;
const LARGER = 65 << 20; // Two regions instead of one.

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-grow-'));
  path = join(folder, 'disk');
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(SIZE - 4096, Buffer.alloc(4096, 5));
  await disk.close();
});
afterEach(() => rm(folder, { recursive: true }));

async function bytesAt(disk: FileDevice, offset: number): Promise<number> {
  const into = Buffer.alloc(4096);
  await disk.read(offset, 4096, into);
  return into[0];
}

/** Leaves the header as growing does before anything else, and the data at this size. */
async function cutShort(dataBytes: number): Promise<void> {
  const sums = await open(`${path}.crc32c`, 'r+');
  const found = await readHeader(sums);
  if (found.kind !== 'present') throw new Error('no header');
  const { header } = found;
  await writeHeader(sums, { ...header, growingTo: LARGER, generation: header.generation + 1 });
  await sums.close();
  await truncate(path, dataBytes);
}

test('keeps its data and identity; the new part is blank, and can be written', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: LARGER, grow: true });
  expect(disk.sizeBytes).toBe(LARGER);
  expect([await bytesAt(disk, SIZE - 4096), await bytesAt(disk, SIZE), await bytesAt(disk, LARGER - 4096)]).toEqual([
    5, 0, 0,
  ]);
  await disk.write(LARGER - 4096, Buffer.alloc(4096, 6));
  const { identity } = disk;
  await disk.close();
  const again = await FileDevice.open({ path });
  expect([again.sizeBytes, again.identity.uuid, again.identity.name]).toEqual([LARGER, identity.uuid, 'disk']);
  expect(again.identity.generation).toBeGreaterThan(identity.generation);
  expect([await bytesAt(again, SIZE - 4096), await bytesAt(again, LARGER - 4096)]).toEqual([5, 6]);
  await again.close();
});

test('without being asked for it does not grow, and it never becomes smaller', async () => {
  await expect(FileDevice.open({ path, sizeBytes: LARGER })).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
  await expect(FileDevice.open({ path, sizeBytes: SIZE / 2, grow: true })).rejects.toMatchObject({
    code: 'ERR_ROCE_MISMATCH',
  });
  expect((await stat(path)).size).toBe(SIZE);
});

test.each([SIZE, LARGER])('cut short with %s bytes of data it is a disk of that size', async (dataBytes) => {
  await cutShort(dataBytes);
  const disk = await FileDevice.open({ path });
  expect([disk.sizeBytes, await bytesAt(disk, SIZE - 4096)]).toEqual([dataBytes, 5]);
  await disk.close();
  const again = await FileDevice.open({ path, sizeBytes: LARGER, grow: true });
  expect([again.sizeBytes, await bytesAt(again, SIZE - 4096)]).toEqual([LARGER, 5]);
  await again.close();
});

test('cut short with data of a third size, it is not the disk of these checksums', async () => {
  await cutShort(LARGER + 4096);
  await expect(FileDevice.open({ path })).rejects.toThrow(/does not belong/);
});

test.runIf(HAS_KOFFI)('a thick disk has all of its new space', async () => {
  await (await FileDevice.open({ path, provision: 'thick' })).close();
  const disk = await FileDevice.open({ path, sizeBytes: 4 << 20, grow: true });
  expect(disk.thick).toBe(true);
  await disk.close();
  expect((await stat(path)).blocks * 512).toBeGreaterThanOrEqual(4 << 20);
});
