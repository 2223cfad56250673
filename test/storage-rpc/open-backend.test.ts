import { expect, test } from 'vitest';
import { MemoryDevice } from '../../src/storage-rpc/disk/memory-device.js';
import { openBackend } from '../../src/storage-rpc/open-backend.js';
import { ServedDisk } from './nbd/nbd-pair.js';

test.each([
  ['memory', undefined],
  ['memory', 0],
  ['file:', 4096],
  ['file:/nowhere/disk', 1000],
  ['tape', 4096],
  ['nbd:nbd://127.0.0.1', 4096],
  ['nbd:http://127.0.0.1', undefined],
])('%s of %s bytes is refused as a mistake of the caller', async (spec, size) => {
  await expect(openBackend(spec, size)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
});

test('an NBD export, with and without the word before its URI', async () => {
  const disk = await ServedDisk.open(new MemoryDevice(8192));
  for (const spec of [disk.server.uri, `nbd:${disk.server.uri}`]) {
    await using device = await openBackend(spec, undefined);
    expect(device.sizeBytes).toBe(8192);
  }
  await disk.close();
});
