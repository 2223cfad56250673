/** Servers with a heap of 64 MiB (`--max-old-space-size=64`): they do their work, because data is outside the heap. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openKv } from '../../packages/kv/src/index.js';
import { openNvme } from '../../packages/nvme/src/live/open-nvme.js';
import { openDevice } from '../../src/index.js';
import type { BlockDevice } from '../../src/storage-rpc/disk/block-device.js';
import { StorageClient } from '../../src/storage-rpc/live/storage-client.js';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { isBuilt, rocev2Starter } from './executable.js';

const SERVER = '127.0.6.51';
const CLIENT = '127.0.6.52';
const MIB = 1 << 20;
const DISK = ['--size', '256MiB'];
const start = rocev2Starter();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-small-heap-'));
});
beforeEach(() => void vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=64'));
afterEach(() => void vi.unstubAllEnvs());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Four times the heap through the server, 32 MiB at a time. */
async function moves(disk: BlockDevice): Promise<void> {
  const data = Buffer.alloc(MIB, 'a block of data ');
  const into = Array.from({ length: 32 }, () => Buffer.alloc(MIB));
  for (let at = 0; at < 256 * MIB; at += 32 * MIB) {
    await Promise.all(into.map((_, i) => disk.write(at + i * MIB, data)));
    await Promise.all(into.map((bytes, i) => disk.read(at + i * MIB, MIB, bytes)));
    expect(into.every((bytes) => bytes.equals(data))).toBe(true);
  }
}

const SERVERS: Readonly<Record<string, readonly [args: () => string[], work: () => Promise<void>]>> = {
  'disk serve': [
    () => ['disk', 'serve', '--backend', `file:${folder}/disk`, ...DISK, '--bind', SERVER, '-p', '18651'],
    async () => {
      const client = await StorageClient.connect({ host: SERVER, port: 18_651 });
      await moves(client.disk);
      await client.close();
    },
  ],
  'disk nbd': [
    () => ['disk', 'nbd', '--backend', 'memory', ...DISK, '--listen', `${SERVER}:18652`],
    async () => {
      const disk = await NbdDevice.open(`nbd://${SERVER}:18652`);
      await moves(disk);
      await disk.close();
    },
  ],
  'nvme target': [
    () => ['nvme', 'target', '--disk', 'memory', ...DISK, '--bind', SERVER, '-p', '18653'],
    async () => {
      await using disk = await openNvme({ address: SERVER, port: 18_653, nqn: 'nqn.2026-11.rocev2:disk' });
      await moves(disk);
    },
  ],
  'kv serve': [
    () => ['kv', 'serve', '--bind', SERVER, '-p', '18654', '--memory', '256MiB'],
    async () => {
      await using device = await openDevice({ address: CLIENT, udpPort: 0 });
      await using kv = await openKv<string>({ device, host: SERVER, port: 18_654, codec: 'string' });
      const value = 'value '.repeat(10_000);
      for (let at = 0; at < 1200; at += 50)
        await Promise.all(Array.from({ length: 50 }, (_, i) => kv.set(`key ${at + i}`, value)));
      expect(await kv.get('key 1199')).toBe(value);
    },
  ],
  'extents up': [
    () => ['extents', 'up', '--dir', `${folder}/cluster`, '--bind', SERVER, '-p', '18655', '--nodes', '3'],
    async () => {
      const file = join(folder, 'file');
      writeFileSync(file, Buffer.alloc(16 * MIB, 'lines '));
      const appended = start('extents', 'append', 'log', file, '--manager', `${SERVER}:18655`);
      expect(await appended.ended(), appended.stderr).toBe(0);
    },
  ],
};

describe.runIf(isBuilt)('with a heap of 64 MiB', () => {
  it.each(Object.keys(SERVERS))('%s works, and ends in order', async (name) => {
    const [args, work] = SERVERS[name];
    const server = start(...args());
    await server.writes('stderr', /Ctrl-C/);
    await work();
    server.kill('SIGINT');
    expect(await server.ended(), server.stderr).toBe(0);
    expect(server.stderr).not.toMatch(/heap limit|out of memory/);
  });
});
