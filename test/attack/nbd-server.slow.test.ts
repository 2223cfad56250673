/** The TCP port of an NBD server: who says nothing, or never fetches an answer, keeps nobody else from his disk. */

import type { Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { MemoryDevice } from '../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { NbdServer } from '../../src/storage-rpc/nbd/server.js';
import { goData, OPT, option, u32 } from '../storage-rpc/nbd/raw-client.js';
import { eventually } from '../support/eventually.js';
import { timeConnects } from './toolkit/honest-peers.js';
import { crowd, hangUp, held } from './toolkit/hostile-connections.js';

const HOST = '127.0.8.211';
const STRANGER = '127.0.8.212';
const DISK_BYTES = 1 << 20;

let server: NbdServer;
let strangers: Socket[] = [];
const disks: NbdDevice[] = [];
afterEach(async () => {
  hangUp(strangers);
  for (const disk of disks.splice(0)) await disk.close();
  await server.close();
});

async function serve(): Promise<void> {
  const device = new MemoryDevice(DISK_BYTES);
  server = await NbdServer.open({ listen: { host: HOST, port: 0 }, exportName: 'disk0', description: '', device });
}

function portOfServer(): number {
  return Number(new URL(server.uri).port);
}

async function openDisk(): Promise<NbdDevice> {
  const disk = await NbdDevice.open(server.uri);
  disks.push(disk);
  return disk;
}

/** Writes and reads back. */
async function use(disk: NbdDevice, fill: number): Promise<void> {
  const data = Buffer.alloc(4096, fill);
  const back = Buffer.alloc(4096);
  await disk.write(0, data);
  await disk.read(0, back.length, back);
  expect(back.equals(data)).toBe(true);
}

/** What a client says up to the transmission phase. */
const HANDSHAKE = Buffer.concat([u32(3), option(OPT.GO, goData('disk0'))]);

it.each([
  ['say nothing', undefined],
  ['begin a handshake', 'IHAVE'],
])('strangers on 300 connections %s: honest clients are served, before and after', async (_, text) => {
  await serve();
  const before = await openDisk();
  strangers = await crowd(300, {
    host: HOST,
    port: portOfServer(),
    from: STRANGER,
    ...(text !== undefined && { text }),
  });
  await use(before, 1);
  const times = await timeConnects(20, async (turn) => use(await openDisk(), turn));
  expect(times).toMatchObject({ success: 1, failures: [] });
  await use(before, 2);
  expect(server.clients).toBeLessThanOrEqual(64);
  expect(server.counters.turnedAway).toBeGreaterThanOrEqual(300 - 48);
});

it('one address that completes its handshakes gets no more than its share; others are served', async () => {
  await serve();
  strangers = await crowd(100, { host: HOST, port: portOfServer(), from: STRANGER });
  for (const socket of strangers) if (!socket.destroyed) socket.write(HANDSHAKE);
  await eventually(() => held(strangers) <= 48);
  await use(await openDisk(), 3);
  expect(server.clients).toBeLessThanOrEqual(49);
});

it('without strangers nobody is turned away', async () => {
  await serve();
  for (let i = 0; i < 10; i++) await use(await openDisk(), i);
  expect(server.counters.turnedAway).toBe(0);
});
