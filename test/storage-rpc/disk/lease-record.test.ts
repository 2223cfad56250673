/** The last lease of a disk in its file: it outlives the process, and a copy that was torn leaves the one before. */

import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import type { LeaseRecord } from '../../../src/storage-rpc/disk/lease-store.js';

const COPIES_AT = [2048, 6144];
const OWNER = '5f1d2c3e-8a40-4f6b-9d27-c0a1b2e3d4f5';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-lease-'));
});
afterEach(() => rm(folder, { recursive: true }));

function opened(sizeBytes?: number, grow = false): Promise<FileDevice> {
  return FileDevice.open({ path: join(folder, 'disk'), ...(sizeBytes !== undefined && { sizeBytes }), grow });
}

function lease(term: number, changes: Partial<LeaseRecord> = {}): LeaseRecord {
  return { term, owner: OWNER, label: `process ${term}`, isHeld: true, ...changes };
}

async function overwrite(at: number, bytes: Uint8Array): Promise<void> {
  await using file = await open(join(folder, 'disk.crc32c'), 'r+');
  await file.write(bytes, 0, bytes.length, at);
}

test('what was saved last is there when the disk is opened again, also after it has grown', async () => {
  const disk = await opened(1 << 20);
  expect(disk.leaseStore.initial).toBeUndefined();
  for (let term = 1; term <= 5; term++) await disk.leaseStore.save(lease(term));
  await disk.leaseStore.save(lease(6, { owner: undefined, label: 'ä'.repeat(40), isHeld: false }));
  await disk.close();
  const again = await opened(2 << 20, true);
  expect(again.leaseStore.initial).toEqual({ term: 6, owner: undefined, label: 'ä'.repeat(31), isHeld: false });
  await again.close();
});

test('a copy that was being written when the power failed leaves the one before', async () => {
  const disk = await opened(1 << 20);
  await disk.leaseStore.save(lease(1));
  await disk.leaseStore.save(lease(2));
  await disk.close();
  for (const at of COPIES_AT) {
    // One of the two is the newer one.
    await overwrite(at + 16, Buffer.from([99]));
    const left = await opened();
    const { initial } = left.leaseStore;
    expect(initial).toEqual(lease(at === COPIES_AT[0] ? 1 : 3));
    await left.leaseStore.save(lease(3));
    await left.close();
  }
});

test('a disk that is closed stores nothing more', async () => {
  const disk = await opened(1 << 20);
  await disk.close();
  await expect(disk.leaseStore.save(lease(1))).rejects.toMatchObject({ errno: 'ESHUTDOWN' });
});
