/** File disks of any multiple of 512 bytes, such as ISO images: the last checked block reaches past the end. */

import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../contracts/block-device-contract.js';
import { HAS_KOFFI } from '../../support/has-koffi.js';
import { ServedDisk } from '../nbd/nbd-pair.js';

/** ISO images are multiples of 2,048. */
const ISO_BYTES = CONTRACT_DISK_BYTES + 2048;
const SIZES = [512, 3584, 4608, ISO_BYTES];

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-odd-'));
  path = join(folder, 'disk');
});
afterEach(() => rm(folder, { recursive: true }));

blockDeviceContract('file of 1 MiB and 1,536 bytes', () =>
  FileDevice.open({ path, sizeBytes: CONTRACT_DISK_BYTES + 1536 }),
);

async function contents(disk: Pick<FileDevice, 'read' | 'sizeBytes'>): Promise<Buffer> {
  const bytes = Buffer.alloc(disk.sizeBytes, 0xee);
  await disk.read(0, bytes.length, bytes);
  return bytes;
}

describe.each(SIZES)('a disk of %i bytes', (sizeBytes) => {
  const image = Buffer.from(Uint8Array.from({ length: sizeBytes }, (_, i) => i * 7 + (i >> 9)));

  test('keeps its last sector and the size of the file; its damage is found', async () => {
    const disk = await FileDevice.open({ path, sizeBytes });
    await disk.write(0, image);
    await disk.write(sizeBytes - 512, Buffer.alloc(512, 0x55), { fua: true });
    await disk.close();
    expect((await stat(path)).size).toBe(sizeBytes);
    const expected = Buffer.from(image).fill(0x55, sizeBytes - 512);
    expect((await readFile(path)).equals(expected)).toBe(true);
    const again = await FileDevice.open({ path });
    expect(again.sizeBytes).toBe(sizeBytes);
    expect((await contents(again)).equals(expected)).toBe(true);
    expect(await again.verify(0, sizeBytes)).toEqual([]);
    await again.close();
    expected[sizeBytes - 1] ^= 1;
    await writeFile(path, expected);
    const damaged = await FileDevice.open({ path });
    await expect(damaged.read(sizeBytes - 512, 512, Buffer.alloc(512))).rejects.toThrow(/checksum is wrong/);
    await damaged.close();
  });

  test('an image without checksums gets them and is not changed; zeros and trims reach the last sector', async () => {
    await writeFile(path, image);
    const disk = await FileDevice.open({ path });
    expect((await contents(disk)).equals(image)).toBe(true);
    await disk.writeZeroes(sizeBytes - 512, 512);
    expect((await contents(disk)).equals(Buffer.from(image).fill(0, sizeBytes - 512))).toBe(true);
    await disk.trim(0, sizeBytes);
    expect(await disk.blockStatus(0, sizeBytes)).toEqual([{ lengthBytes: sizeBytes, hole: true, zero: true }]);
    await disk.close();
    expect((await stat(path)).size).toBe(sizeBytes);
  });

  test.skipIf(!HAS_KOFFI)(
    'a thick disk has no more than its bytes; it grows to another such size, also after a crash',
    async () => {
      const disk = await FileDevice.open({ path, sizeBytes, provision: 'thick' });
      await disk.write(0, image);
      await disk.close();
      const grown = await FileDevice.open({ path, sizeBytes: sizeBytes + 1024, grow: true });
      expect((await contents(grown)).equals(Buffer.concat([image, Buffer.alloc(1024)]))).toBe(true);
      await grown.write(sizeBytes, Buffer.alloc(1024, 9));
      await grown.close();
      expect((await stat(path)).size).toBe(sizeBytes + 1024);
    },
  );

  test('is served whole over NBD', async () => {
    const disk = await FileDevice.open({ path, sizeBytes });
    const served = await ServedDisk.open(disk);
    const client = await NbdDevice.open(served.server.uri);
    expect(client.sizeBytes).toBe(sizeBytes);
    await client.write(0, image);
    expect((await contents(client)).equals(image)).toBe(true);
    await expect(client.read(sizeBytes, 512, Buffer.alloc(512))).rejects.toMatchObject({ errno: 'EINVAL' });
    await client.close();
    await served.close();
    await disk.close();
  });
});

test.each([0, 511, 513, ISO_BYTES + 1])('a disk of %i bytes is refused', async (sizeBytes) => {
  const hint = 'give a multiple of 512, at most 64 TiB';
  await expect(FileDevice.open({ path, sizeBytes })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE', hint });
});
