/** A disk over a cluster on sockets and files: it outlives a node, other owners and its programs, and so do its snapshots and clones. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { crc32c } from '../../../../src/core/crc32c.js';
import { openDevice } from '../../../../src/verbs/open-device.js';
import { eventually } from '../../../../test/support/eventually.js';
import { openStreamBackend } from '../../src/commands/stream-backend.js';
import { type ExtentsClient, openExtents, type StreamDisk, serveManager, serveNode } from '../../src/index.js';

const MIB = 1 << 20;
const SIZE = 8 * MIB;
const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const nodes = new Map<number, { close(): Promise<void> }>();
let client: ExtentsClient;
let managerAddress: string;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-disk-'));
  closing.push(() => rm(folder, { recursive: true }));
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  closing.push(() => device.close());
  const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0, extentBytes: MIB });
  closing.push(() => manager.close());
  managerAddress = manager.address;
  nodes.clear();
  for (const name of ['a', 'b', 'c', 'd']) {
    const node = await serveNode({ device, folder: join(folder, name), manager: manager.address });
    nodes.set(node.node, node);
    closing.push(() => node.close());
  }
  client = await openExtents({ device, manager: manager.address });
  closing.push(() => client.close());
});

async function contentOf(disk: StreamDisk): Promise<Buffer> {
  const bytes = Buffer.alloc(disk.sizeBytes);
  await disk.read(0, bytes.length, bytes);
  return bytes;
}

/** What is written to a disk, and what it must read as. */
async function write(disk: StreamDisk, expected: Buffer, offset: number, bytes: Buffer): Promise<void> {
  bytes.copy(expected, offset);
  await disk.write(offset, bytes);
}

describe('a disk over a cluster on sockets', () => {
  it('keeps what was written when a node ends, and when it is opened again', async () => {
    await client.createDisk('vol', { sizeBytes: SIZE });
    const expected = Buffer.alloc(SIZE);
    await using disk = await client.openDisk('vol');
    expect(disk.identity).toMatchObject({ name: 'vol' });
    expect((await contentOf(disk)).equals(expected)).toBe(true);
    await write(disk, expected, 0, Buffer.alloc(3 * MIB, 'a'));
    await write(disk, expected, 5000, Buffer.from('in the middle of a block'));
    await write(disk, expected, 8190, Buffer.from('over the edge of a block'));
    expected.fill(0, 20_000, 100_000);
    await disk.writeZeroes(20_000, 80_000);
    const [lost] = (await client.extents('vol.disk-log')).at(-1)!.replicas;
    await nodes.get(lost.node)!.close();
    await Promise.all(
      Array.from({ length: 16 }, (_, k) => write(disk, expected, 4 * MIB + k * 8192, Buffer.alloc(8192, k + 1))),
    );
    expect((await contentOf(disk)).equals(expected)).toBe(true);
    const crcs = await disk.readChecked(0, 16_384, Buffer.alloc(16_384));
    expect([...crcs]).toEqual([0, 1, 2, 3].map((k) => crc32c(expected.subarray(k * 4096, (k + 1) * 4096))));
    await expect(disk.write(SIZE - 1, Buffer.alloc(2))).rejects.toMatchObject({ errno: 'ENOSPC' });
    await expect(disk.read(SIZE, 1, Buffer.alloc(1))).rejects.toMatchObject({ errno: 'EINVAL' });
    expect(await disk.blockStatus(3 * MIB, 2 * MIB)).toEqual([
      { lengthBytes: MIB, hole: true, zero: true },
      { lengthBytes: 16 * 8192, hole: false, zero: false },
      { lengthBytes: MIB - 16 * 8192, hole: true, zero: true },
    ]);
    await disk.close();
    await expect(disk.read(0, 1, Buffer.alloc(1))).rejects.toMatchObject({ errno: 'ESHUTDOWN' });
    await using again = await client.openDisk('vol');
    expect((await contentOf(again)).equals(expected)).toBe(true);
    expect(again.identity.generation).toBeGreaterThan(disk.identity.generation);
  });

  it('has one owner, who is told that it has been replaced', async () => {
    await client.createDisk('vol', { sizeBytes: SIZE });
    await using first = await client.openDisk('vol', { owner: 'first' });
    await first.write(0, Buffer.from('1'));
    await expect(client.openDisk('vol')).rejects.toThrow('belongs to first');
    await expect(client.deleteDisk('vol')).rejects.toMatchObject({
      remoteCode: 'BUSY',
      message: expect.stringContaining("the disk 'vol' is in use: end the program that has it"),
    });
    await using second = await client.openDisk('vol', { takeOver: true });
    await expect(first.write(0, Buffer.from('2'))).rejects.toThrow("EIO: the disk 'vol' now has another owner");
    await expect(first.read(0, 1, Buffer.alloc(1))).rejects.toThrow('now has another owner');
    const found = Buffer.alloc(1);
    await second.read(0, 1, found);
    expect(String(found)).toBe('1');
  });

  it('is waited for by a second gateway until the first one closes it, and a replaced gateway says so', async () => {
    await client.createDisk('vol', { sizeBytes: SIZE });
    const warnings: string[] = [];
    const output = {
      io: { interrupted: new AbortController().signal },
      warn: (text: string) => void warnings.push(text),
      note: () => {},
    };
    const first = await client.openDisk('vol', { owner: 'first' });
    const opening = openStreamBackend(`stream:vol@${managerAddress}`, {}, output as never);
    await eventually(() => warnings.length > 0, { limitMs: 60_000 });
    await first.close();
    await using backend = await opening;
    expect(warnings).toEqual([
      expect.stringMatching(/belongs to first; waiting for its lease to end \(\?take-over does not wait\)/),
    ]);
    await using second = await client.openDisk('vol', { owner: 'second', takeOver: true });
    await second.write(0, Buffer.from('2'));
    await eventually(() => warnings.length > 1, { limitMs: 60_000 });
    expect(warnings[1]).toMatch(/^FENCED: second has taken over the disk 'vol': requests fail with EIO from now on/);
    await expect(backend.disk.write(0, Buffer.from('1'))).rejects.toThrow(/EIO/);
  });

  it('has snapshots that never change and clones of their own, and gives space back', async () => {
    await client.createDisk('vol', { sizeBytes: SIZE });
    await using disk = await client.openDisk('vol');
    const before = Buffer.alloc(SIZE);
    await write(disk, before, 0, Buffer.alloc(2 * MIB, 'b'));
    await client.snapshotDisk('vol', 'kept'); // While it is in use.
    await client.cloneDisk('kept', 'other');
    await disk.write(0, Buffer.alloc(4096, 'after'));
    const cloned = Buffer.from(before);
    await using clone = await client.openDisk('other');
    await write(clone, cloned, MIB, Buffer.alloc(4096, 'clone'));
    await using snapshot = await client.openDisk('kept');
    expect(snapshot.readOnly).toBe(true);
    await expect(snapshot.write(0, Buffer.alloc(1))).rejects.toMatchObject({ errno: 'EPERM' });
    await disk.trim(0, SIZE);
    await disk.write(0, Buffer.alloc(MIB, 'c'));
    await disk.compact();
    expect((await contentOf(snapshot)).equals(before)).toBe(true);
    expect((await contentOf(clone)).equals(cloned)).toBe(true);
    await clone.close();
    await expect(client.cloneDisk('kept', 'other')).rejects.toMatchObject({ remoteCode: 'CONFLICT' });
    await expect(client.snapshotDisk('nothing', 'x')).rejects.toMatchObject({ remoteCode: 'MISSING' });
    await expect(client.createDisk('a/b', { sizeBytes: SIZE })).rejects.toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
    await expect(client.createDisk('odd', { sizeBytes: 5000 })).rejects.toMatchObject({
      code: 'ERR_ROCE_OUT_OF_RANGE',
    });
    const listed = await client.disks();
    expect(listed.map(({ disk: name, isSnapshot, parent }) => [name, isSnapshot, parent])).toEqual([
      ['kept', true, 'vol'],
      ['other', false, 'kept'],
      ['vol', false, undefined],
    ]);
    expect(listed.every(({ sizeBytes }) => sizeBytes === SIZE)).toBe(true);
    await client.deleteDisk('kept');
    await client.deleteDisk('other');
    await disk.close();
    await client.deleteDisk('vol');
    await expect(client.deleteDisk('vol')).rejects.toMatchObject({ remoteCode: 'MISSING' });
    await expect(client.openDisk('vol')).rejects.toThrow("there is no disk 'vol'");
    await eventually(async () => (await client.status()).nodes.every(({ usedBytes }) => usedBytes === 0));
  });
});
