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

test.each([
  [8192, 4096, []],
  [9728, 4096, [/blocks of 4096 bytes: its last 1536 bytes are not used/]],
  [8193, 1, []],
])('an NBD export of %i bytes with blocks of %i bytes: a message names the bytes that are not used', async (...row) => {
  const [sizeBytes, blockBytes, expected] = row;
  const device = new MemoryDevice(sizeBytes);
  Object.defineProperty(device, 'blockBytes', { value: blockBytes });
  const disk = await ServedDisk.open(device);
  const notices: string[] = [];
  await using _ = await openBackend(disk.server.uri, undefined, { onNotice: (notice) => notices.push(notice) });
  expect(notices).toEqual(expected.map((text) => expect.stringMatching(text)));
  await disk.close();
});
