import { copyFile, type FileHandle, mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { portableCrc32c } from '../../../src/core/crc32c.js';
import { EXTENTS_MAX } from '../../../src/storage-rpc/disk/block-device.js';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../contracts/block-device-contract.js';
import { HAS_KOFFI } from '../../support/has-koffi.js';

const SIZE = CONTRACT_DISK_BYTES;
const BLOCK = 4096;

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-disk-'));
  path = join(folder, 'disk');
});
afterEach(() => rm(folder, { recursive: true }));

blockDeviceContract('file', () => FileDevice.open({ path, sizeBytes: SIZE }));

/** Bytes of the file, changed behind the disk's back. */
async function damage(offset: number, length: number, file = path): Promise<void> {
  const bytes = await readFile(file);
  for (let i = offset; i < offset + length; i++) bytes[i] ^= 0x40;
  await writeFile(file, bytes);
}

/** The disk as a process finds it whose predecessor was killed: the files as they are, nothing written back. */
async function openCopy(): Promise<FileDevice> {
  const copy = join(folder, 'copy');
  await copyFile(path, copy);
  await copyFile(`${path}.crc32c`, `${copy}.crc32c`);
  return FileDevice.open({ path: copy });
}

async function readBlock(disk: FileDevice, block: number): Promise<Buffer> {
  const bytes = Buffer.alloc(BLOCK);
  await disk.read(block * BLOCK, BLOCK, bytes);
  return bytes;
}

test('what was written is there when the disk is opened again, without its size being said', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(1000, Buffer.alloc(10_000, 0x5a));
  await disk.close();
  const again = await FileDevice.open({ path });
  expect(again.sizeBytes).toBe(SIZE);
  const read = Buffer.alloc(10_000);
  await again.read(1000, read.length, read);
  expect(read.equals(Buffer.alloc(10_000, 0x5a))).toBe(true);
  expect(again.checksumErrors).toBe(0);
  await again.close();
});

test('a byte that changed on the disk fails the reads of its block, whole or in part, and no others', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(SIZE, 7));
  await damage(5 * BLOCK + 123, 1);
  await expect(readBlock(disk, 5)).rejects.toMatchObject({ errno: 'EIO' });
  await expect(disk.read(5 * BLOCK + 4000, 8, Buffer.alloc(8))).rejects.toMatchObject({ errno: 'EIO' });
  await expect(disk.read(0, SIZE, Buffer.alloc(SIZE))).rejects.toMatchObject({ errno: 'EIO' });
  expect(disk.checksumErrors).toBe(3);
  await readBlock(disk, 4);
  await readBlock(disk, 6);
  await disk.close();
});

test('a write to a part of a damaged block does not make it look whole; one to all of it heals it', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(4 * BLOCK, 7));
  await damage(BLOCK + 1, 1);
  await expect(disk.write(BLOCK + 100, Buffer.alloc(10))).rejects.toMatchObject({ errno: 'EIO' });
  await disk.write(BLOCK, Buffer.alloc(BLOCK, 8));
  expect((await readBlock(disk, 1)).every((byte) => byte === 8)).toBe(true);
  await disk.close();
});

test('a write keeps the CRCs it brings: data that is not what its sender summed is noticed when it is read', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  const sent = Buffer.alloc(2 * BLOCK, 0x33);
  const crc = portableCrc32c(sent.subarray(0, BLOCK));
  const arrived = Buffer.from(sent);
  arrived[BLOCK + 7] ^= 1; // In the memory of the server, after it had been checked.
  await disk.write(0, arrived, { crcs: Uint32Array.of(crc, crc) });
  expect((await readBlock(disk, 0)).equals(sent.subarray(0, BLOCK))).toBe(true);
  await expect(readBlock(disk, 1)).rejects.toMatchObject({ errno: 'EIO' });
  await expect(disk.readChecked(0, 2 * BLOCK, Buffer.alloc(2 * BLOCK))).rejects.toMatchObject({ errno: 'EIO' });
  await disk.close();
});

test('a block of zeros that is not zero any more is noticed', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await damage(9 * BLOCK, 1);
  await expect(readBlock(disk, 9)).rejects.toMatchObject({ errno: 'EIO' });
  await disk.close();
});

test('a disk that is not closed: every block is as it was written last', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  for (let round = 1; round <= 3; round++) {
    await Promise.all(Array.from({ length: 16 }, (_, i) => disk.write(i * BLOCK, Buffer.alloc(BLOCK, 16 * round + i))));
  }
  const heir = await openCopy();
  for (let i = 0; i < 16; i++) expect((await readBlock(heir, i)).every((byte) => byte === 48 + i)).toBe(true);
  await heir.close();
});

test('killed between checksum and data: the block is as before, and can be written', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(8 * BLOCK, 1));
  const before = await readFile(path);
  await disk.write(0, Buffer.alloc(8 * BLOCK, 2));
  await writeFile(path, before); // The checksums are of the second write, the data of the first.
  const heir = await openCopy();
  expect((await readBlock(heir, 3)).every((byte) => byte === 1)).toBe(true);
  await heir.write(3 * BLOCK + 1, Buffer.alloc(10, 9));
  expect((await readBlock(heir, 3))[1]).toBe(9);
  await heir.close();
});

test('a torn block fails until it is written; its neighbours are good', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(4 * BLOCK, 1));
  await disk.close();
  await damage(BLOCK + 512, 512);
  const heir = await FileDevice.open({ path });
  await expect(readBlock(heir, 1)).rejects.toMatchObject({ errno: 'EIO' });
  await readBlock(heir, 0);
  await heir.writeZeroes(BLOCK, BLOCK);
  expect((await readBlock(heir, 1)).every((byte) => byte === 0)).toBe(true);
  await heir.close();
});

const allocated = async () => (await stat(path)).blocks * 512;

test.skipIf(!HAS_KOFFI)('a thin disk takes space when it is written, and gives it back by a trim', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  expect(await allocated()).toBeLessThan(SIZE);
  await disk.write(0, Buffer.alloc(SIZE, 1));
  await disk.trim(0, SIZE / 2);
  expect(await disk.blockStatus(0, SIZE)).toEqual([
    { lengthBytes: SIZE / 2, hole: true, zero: true },
    { lengthBytes: SIZE / 2, hole: false, zero: false },
  ]);
  if (process.platform === 'linux') expect(await allocated()).toBeLessThan(SIZE);
  await disk.writeZeroes(SIZE / 2, SIZE / 2, { noHole: true });
  expect(await allocated()).toBeGreaterThanOrEqual(SIZE / 2);
  await disk.close();
});

test('a thick disk has its space when it is made, and keeps it through trims and zeros', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE, provision: 'thick' });
  expect(await allocated()).toBeGreaterThanOrEqual(SIZE);
  await disk.write(0, Buffer.alloc(SIZE, 1));
  await disk.trim(0, SIZE); // As mkfs does first of all.
  await disk.writeZeroes(0, SIZE / 2);
  expect(await disk.blockStatus(0, SIZE)).toEqual([{ lengthBytes: SIZE, hole: false, zero: true }]);
  expect(await allocated()).toBeGreaterThanOrEqual(SIZE);
  await disk.close();
  const again = await FileDevice.open({ path });
  expect(again.thick).toBe(true);
  await again.trim(0, SIZE);
  expect(await allocated()).toBeGreaterThanOrEqual(SIZE);
  await again.close();
});

test('a thin disk becomes thick when it is opened as such, with what it holds', async () => {
  const thin = await FileDevice.open({ path, sizeBytes: SIZE });
  await thin.write(BLOCK, Buffer.alloc(BLOCK, 5));
  await thin.close();
  const thick = await FileDevice.open({ path, provision: 'thick' });
  expect(await allocated()).toBeGreaterThanOrEqual(SIZE);
  expect((await readBlock(thick, 1)).every((byte) => byte === 5)).toBe(true);
  await thick.close();
});

test('an image without checksums is taken as it is', async () => {
  const image = Buffer.alloc(64 * BLOCK, 0x77).fill(0, 8 * BLOCK, 16 * BLOCK);
  await writeFile(path, image);
  const disk = await FileDevice.open({ path });
  const read = Buffer.alloc(image.length);
  await disk.read(0, read.length, read);
  expect(read.equals(image)).toBe(true);
  await damage(0, 1);
  await expect(readBlock(disk, 0)).rejects.toMatchObject({ errno: 'EIO' });
  await disk.close();
});

test('of a disk in very many runs the beginning is told, and who asks again hears the rest', async () => {
  const blocks = 2 * EXTENTS_MAX + 10;
  const image = Buffer.alloc(blocks * BLOCK);
  for (let block = 0; block < blocks; block += 2) image[block * BLOCK] = 1;
  await writeFile(path, image);
  const disk = await FileDevice.open({ path });
  const runs: boolean[] = [];
  let requests = 0;
  for (let at = 0; at < disk.sizeBytes; requests++) {
    const extents = await disk.blockStatus(at, disk.sizeBytes - at);
    expect(extents.length).toBeLessThanOrEqual(EXTENTS_MAX + 1);
    for (const { lengthBytes, zero } of extents) {
      expect(lengthBytes).toBe(BLOCK);
      runs.push(zero);
      at += lengthBytes;
    }
  }
  expect(requests).toBe(3);
  expect(runs).toEqual(Array.from({ length: blocks }, (_, block) => block % 2 === 1));
  await disk.close();
});

test('sizes and files that do not fit are refused with what to do', async () => {
  await expect(FileDevice.open({ path })).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  await expect(FileDevice.open({ path, sizeBytes: 5000 })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
  await expect(FileDevice.open({ path: folder, sizeBytes: SIZE })).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  await (await FileDevice.open({ path, sizeBytes: SIZE })).close();
  await expect(FileDevice.open({ path, sizeBytes: 2 * SIZE })).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
  await truncate(path, SIZE / 2);
  await expect(FileDevice.open({ path })).rejects.toThrow(/crc32c does not belong/);
});

test.skipIf(!HAS_KOFFI)('a file that is served is not served a second time', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await expect(FileDevice.open({ path })).rejects.toMatchObject({ code: 'ERR_ROCE_BUSY' });
  await disk.close();
  await (await FileDevice.open({ path })).close();
});

test.each([
  [{}, 'there is no such file', /give a size/],
  [{ sizeBytes: SIZE }, 'there is no such folder', /folder$/],
])('a path in a folder that is not there, with %o: %s', async (options, words, end) => {
  const opening = FileDevice.open({ path: `${path}-none/disk`, ...options });
  await expect(opening).rejects.toMatchObject({ code: 'ERR_ROCE_IO', message: expect.stringContaining(words) });
  await expect(opening).rejects.toThrow(end);
});

test('a full file system is reported once, and again when there is space', async () => {
  const notices: string[] = [];
  const disk = await FileDevice.open({ path, sizeBytes: SIZE, onNotice: (notice) => notices.push(notice) });
  await using file = await open(path);
  const files = Object.getPrototypeOf(file) as FileHandle;
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' });
  const spies = [vi.spyOn(files, 'write').mockRejectedValue(full), vi.spyOn(files, 'writev').mockRejectedValue(full)];
  for (let i = 0; i < 3; i++) {
    await expect(disk.write(0, Buffer.alloc(BLOCK))).rejects.toMatchObject({ errno: 'ENOSPC' });
  }
  for (const spy of spies) spy.mockRestore();
  await expect(disk.write(SIZE, Buffer.alloc(1))).rejects.toMatchObject({ errno: 'ENOSPC' }); // Past the end: not reported.
  expect(notices).toEqual([`no space is left for ${path}: writes fail with ENOSPC`]);
  await disk.write(0, Buffer.alloc(BLOCK));
  expect(notices.slice(1)).toEqual([`${path} has space again; requests that failed: 3`]);
  await disk.close();
});
