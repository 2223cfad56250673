import { expect, test } from 'vitest';
import { MemoryDevice } from '../../src/storage-rpc/disk/memory-device.js';
import { openBackend } from '../../src/storage-rpc/open-backend.js';
import { ServedDisk } from './nbd/nbd-pair.js';

test.each([
  ['memory', undefined, 'INVALID_ARGUMENT'],
  ['memory', 0, 'INVALID_ARGUMENT'],
  ['file:', 4096, 'MALFORMED'],
  ['file:/nowhere/disk', 1000, 'OUT_OF_RANGE'],
  ['tape', 4096, 'MALFORMED'],
  ['nbd:nbd://127.0.0.1', 4096, 'CONFLICT'],
  ['nbd:http://127.0.0.1', undefined, 'MALFORMED'],
])('%s of %s bytes is refused as a mistake of the caller', async (spec, size, code) => {
  await expect(openBackend(spec, size)).rejects.toMatchObject({ code: `ERR_ROCE_${code}` });
});

test('an NBD export, with and without the word before its URI', async () => {
  const disk = await ServedDisk.open(new MemoryDevice(8192));
  for (const spec of [disk.server.uri, `nbd:${disk.server.uri}`]) {
    await using device = await openBackend(spec, undefined);
    expect(device.sizeBytes).toBe(8192);
  }
  await disk.close();
});
