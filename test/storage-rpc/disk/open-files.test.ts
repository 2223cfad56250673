/** What a disk in a file is made of, and what is refused: never the wrong disk, never a blank one where there was another. */

import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { portableCrc32c } from '../../../src/core/crc32c.js';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { HAS_KOFFI } from '../../support/has-koffi.js';

const BLOCK = 4096;
const BLOCKS = 64;
const SIZE = BLOCKS * BLOCK;

let folder: string;
let path: string;
let sums: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-open-'));
  path = join(folder, 'disk');
  sums = `${path}.crc32c`;
});
afterEach(() => rm(folder, { recursive: true }));

/** A disk with 5s in its first block, closed. */
async function makeDisk(): Promise<string> {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(BLOCK, 5));
  await disk.close();
  return disk.identity.uuid;
}

async function firstByte(disk: FileDevice): Promise<number> {
  const bytes = Buffer.alloc(BLOCK);
  await disk.read(0, BLOCK, bytes);
  expect(bytes.every((byte) => byte === bytes[0])).toBe(true);
  return bytes[0];
}

test('a disk keeps its UUID and name for life; its generation tells how often it was opened', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE, name: 'orders' });
  expect(disk.identity).toMatchObject({
    uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
    generation: 1,
    name: 'orders',
  });
  const { uuid, name } = disk.identity;
  let openings = disk.identity.openings!;
  await disk.close();
  for (let generation = 2; generation < 6; generation++) {
    const again = await FileDevice.open({ path });
    expect(again.identity).toMatchObject({ uuid, name, generation });
    // Each opening has a mark of its own; the earlier ones are remembered.
    expect(again.identity.openings!.slice(1, generation)).toEqual(openings.slice(0, generation - 1));
    expect(openings.map(({ mark }) => mark)).not.toContain(again.identity.openings![0].mark);
    openings = again.identity.openings!;
    await again.close();
  }
  const other = await FileDevice.open({ path: `${path}2`, sizeBytes: SIZE });
  expect(other.identity.uuid).not.toBe(disk.identity.uuid);
  expect(other.identity.name).toBe('disk2');
  await other.close();
});

test('a header of which one copy is damaged is read from the other, one generation back', async () => {
  const uuid = await makeDisk(); // Generation 1: in the second copy.
  const bytes = await readFile(sums);
  bytes.fill(0xee, BLOCK, 2 * BLOCK);
  await writeFile(sums, bytes);
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  expect(disk.identity).toMatchObject({ uuid });
  expect(await firstByte(disk)).toBe(5);
  await disk.close();
});

test.each([
  ['emptied', () => truncate(path, 0), 'is empty'],
  ['missing', () => rm(path), 'is missing'],
])('a data file that is %s beside its checksums does not become a blank disk', async (_, harm, words) => {
  const uuid = await makeDisk();
  const before = await readFile(sums);
  await harm();
  for (const options of [{ path }, { path, sizeBytes: SIZE }]) {
    const opening = FileDevice.open(options);
    await expect(opening).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
    await expect(opening).rejects.toThrow(words);
    await expect(opening).rejects.toThrow(uuid);
    await expect(opening).rejects.toThrow('--create');
  }
  expect((await readFile(sums)).equals(before)).toBe(true); // The data may come back from a backup.
  const blank = await FileDevice.open({ path, sizeBytes: SIZE, create: true });
  expect(await firstByte(blank)).toBe(0);
  expect(blank.identity.uuid).not.toBe(uuid);
  await blank.close();
});

test('a disk that is there is not made anew, whatever is said', async () => {
  await makeDisk();
  const opening = FileDevice.open({ path, sizeBytes: SIZE, create: true });
  await expect(opening).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
  const disk = await FileDevice.open({ path });
  expect(await firstByte(disk)).toBe(5);
  await disk.close();
});

test.each(HAS_KOFFI ? (['thin', 'thick'] as const) : (['thin'] as const))(
  'a %s disk that is too large for the file system leaves nothing behind',
  async (provision) => {
    // More than a file of ext4 has: less would fill the file system for a moment.
    const opening = FileDevice.open({ path, sizeBytes: 2 ** 46, provision });
    const outcome = await opening.then(
      async (disk) => {
        await disk.close();
        return 'made';
      },
      (error: { code: string }) => error.code,
    );
    // Some file systems hold files of any size; a thick disk of 64 TiB none that tests run on.
    if (provision === 'thin' && outcome === 'made') return;
    expect(outcome).toBe('ERR_ROCE_IO');
    expect(await readdir(folder)).toEqual([]);
  },
);

test('a creation that fails beside an empty file leaves the empty file alone', async () => {
  await writeFile(path, '');
  await mkdir(sums);
  await expect(FileDevice.open({ path, sizeBytes: SIZE })).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  expect((await stat(path)).size).toBe(0);
  expect((await readdir(folder)).toSorted()).toEqual(['disk', 'disk.crc32c']);
});

/** A table of format 1: two CRC-32Cs a block, exclusive-or'ed with that of zeros, behind a header of 4 KiB. */
function format1(values: readonly (readonly [number, number])[]): Buffer {
  const words = new Uint32Array(1024 + 2 * values.length);
  words.set([0x43336b34, 1, BLOCK, values.length, 0]);
  values.forEach((pair, block) => void words.set(pair, 1024 + 2 * block));
  return Buffer.from(words.buffer);
}

const zeroCrc = portableCrc32c(Buffer.alloc(BLOCK));
const oldValue = (byte: number) => (portableCrc32c(Buffer.alloc(BLOCK, byte)) ^ zeroCrc) >>> 0;

test('checksums of format 1 are read, rewritten with a sentence, and still know what is damaged', async () => {
  const data = Buffer.alloc(SIZE);
  const values = Array.from({ length: BLOCKS }, () => [0, 0] as [number, number]);
  const set = (block: number, byte: number, pair: [number, number]) => {
    data.fill(byte, block * BLOCK, (block + 1) * BLOCK);
    values[block] = pair;
  };
  set(1, 7, [oldValue(7), oldValue(7)]);
  set(2, 8, [oldValue(8), oldValue(9)]); // Killed before the data was written,
  set(3, 9, [oldValue(8), oldValue(9)]); // and after it.
  set(4, 3, [oldValue(1), oldValue(1)]); // Damaged.
  set(5, 0, [oldValue(6), 0]); // Zeroed and killed.
  await writeFile(path, data);
  await writeFile(sums, format1(values));
  const notices: string[] = [];
  const disk = await FileDevice.open({ path, onNotice: (notice) => notices.push(notice) });
  expect(notices).toEqual([expect.stringContaining('had format 1 and was rewritten in format 2')]);
  const byteOf = async (block: number) => {
    const bytes = Buffer.alloc(BLOCK);
    await disk.read(block * BLOCK, BLOCK, bytes);
    return bytes[0];
  };
  expect(await Promise.all([0, 1, 2, 3, 5].map(byteOf))).toEqual([0, 7, 8, 9, 0]);
  await expect(byteOf(4)).rejects.toMatchObject({ errno: 'EIO' });
  await disk.close();
  expect(await readdir(folder)).toHaveLength(2);
  const again = await FileDevice.open({ path, onNotice: (notice) => notices.push(notice) });
  expect(notices).toHaveLength(1);
  expect(again.identity.uuid).toBe(disk.identity.uuid);
  await again.close();
});

test('checksums of a later format are refused, and left as they are', async () => {
  await makeDisk();
  const bytes = await readFile(sums);
  for (const at of [0, BLOCK]) bytes.writeUInt32LE(3, at + 4);
  await writeFile(sums, bytes);
  await expect(FileDevice.open({ path })).rejects.toMatchObject({ code: 'ERR_ROCE_UNSUPPORTED' });
  expect((await readFile(sums)).equals(bytes)).toBe(true);
});
