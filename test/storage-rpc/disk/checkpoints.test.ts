/** Checkpoints of a disk in a file: they survive, and an older copy has fewer. */

import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { whyWrong } from '../../../src/storage-rpc/sk/expected-disk.js';

const SIZE = 1 << 20;
const BLOCK = 4096;

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-checkpoints-'));
  path = join(folder, 'disk');
});
afterEach(() => rm(folder, { recursive: true }));

const factsOf = ({ identity, sizeBytes }: FileDevice) => ({ ...identity, sizeBytes });
const copy = async (from: string, to: string) => {
  for (const suffix of ['', '.crc32c']) await copyFile(from + suffix, to + suffix);
};

test('a checkpoint is counted once the disk was written, and is there after the next opening', async () => {
  const disk = await FileDevice.open({ path, sizeBytes: SIZE });
  const count = () => disk.identity.openings![0].checkpoint;
  await disk.checkpoint();
  expect(count()).toBe(0);
  await disk.write(0, Buffer.alloc(BLOCK, 1));
  await Promise.all([disk.checkpoint(), disk.checkpoint()]);
  expect(count()).toBe(1);
  await disk.trim(0, BLOCK);
  await disk.checkpoint();
  await disk.write(0, Buffer.alloc(BLOCK, 2));
  await disk.checkpoint();
  expect(count()).toBe(3);
  const { openings, generation } = disk.identity;
  await disk.close();
  const again = await FileDevice.open({ path });
  expect(again.identity.generation).toBe(generation + 1);
  expect(again.identity.openings!.slice(1, 2)).toEqual(openings!.slice(0, 1));
  await again.close();
});

/** What a client remembers, and whether it takes the disk that is there after a copy was restored. */
test.each<[string, boolean]>([
  ['closed', true],
  ['in use', true],
  ['in use', false],
])('a copy that was made while the disk was %s is refused where the disk was used since: %s', async (when, isUsed) => {
  const saved = join(folder, 'saved');
  let disk = await FileDevice.open({ path, sizeBytes: SIZE });
  await disk.write(0, Buffer.alloc(BLOCK, 1));
  await disk.flush();
  await disk.checkpoint();
  if (when === 'closed') {
    await disk.close();
    await copy(path, saved);
    disk = await FileDevice.open({ path });
  } else await copy(path, saved);
  if (isUsed) {
    await disk.write(0, Buffer.alloc(BLOCK, 2));
    await disk.flush();
    await disk.checkpoint();
  }
  const known = factsOf(disk);
  await disk.close();
  await copy(saved, path);
  const restored = await FileDevice.open({ path });
  const why = whyWrong(known, factsOf(restored));
  if (isUsed) expect(why).toMatch(/this is an(other| older) copy, /);
  else expect(why).toBeUndefined(); // It has all that the client knows of.
  await restored.close();
});
