/** Clients of a storage server that ask for more than their part, or keep memory and do not get on: in virtual time. */

import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { ClientSession } from '../../../src/storage-rpc/sk/client-session.js';
import { SK_RECEIVES } from '../../../src/storage-rpc/sk/rdma-parts.js';
import { pattern, Rig, readIo, writeIo } from './rig.js';

const MIB = 1 << 20;

/** A session that asks for 64 MiB; with `fetches` false nothing that the server sends to it leaves. */
async function greedy(rig: Rig, fetches: boolean): Promise<ClientSession> {
  const session = await rig.connected('tcp', { idleNs: 1e15 });
  if (!fetches) rig.pipe!.server.write = () => {};
  for (let i = 0; i < 64; i++) session.submit(readIo(0, Buffer.alloc(MIB))).catch(() => {});
  return session;
}

test('30 clients that ask for 64 MiB each and fetch nothing hold no more than the budget, and keep nobody waiting', async () => {
  const rig = await Rig.create({ memory: { bytesMax: 8 * MIB, shareBytes: 64 << 10 } });
  for (let i = 0; i < 30; i++) await greedy(rig, false);
  const good = await rig.connected('tcp');
  await rig.pass(1e6);
  for (let i = 0; i < 20; i++) {
    const before = rig.clock.nowNs();
    await rig.until(good.submit(writeIo(4096, pattern(512, i))));
    const into = Buffer.alloc(512);
    await rig.until(good.submit(readIo(4096, into)));
    expect(into.equals(pattern(512, i))).toBe(true);
    expect(rig.clock.nowNs() - before).toBeLessThan(1e6); // Two round trips.
  }
  expect(rig.memory.heldBytes).toBeGreaterThan(7 * MIB);
  expect(rig.memory.heldBytes).toBeLessThanOrEqual(8 * MIB + 31 * (64 << 10));
});

test('whoever keeps memory that others wait for, and does not get on, loses its connection; its memory comes back', async () => {
  const rig = await Rig.create({ memory: { bytesMax: 8 * MIB, shareBytes: 64 << 10, stuckNs: 1e9 } });
  await greedy(rig, false);
  await rig.pass(20e9);
  expect(rig.memory.heldBytes).toBeGreaterThan(7 * MIB);
  expect(rig.server.connections).toBe(1); // Nobody waits but itself.
  const good = await rig.connected('tcp');
  const into = Buffer.alloc(MIB);
  await rig.until(good.submit(readIo(0, into)));
  await rig.pass(1e9);
  expect(rig.memory.heldBytes).toBe(0);
});

test('a client that sends half a write and no more keeps its memory only until others wait for it', async () => {
  const rig = await Rig.create({ memory: { bytesMax: MIB, shareBytes: 64 << 10, stuckNs: 1e9 } });
  const half = await rig.connected('tcp', { idleNs: 1e15 });
  const { client } = rig.pipe!;
  const write = client.write.bind(client);
  client.write = (pieces, onSent) => write([Buffer.concat(pieces).subarray(0, MIB / 2)], onSent);
  half.submit(writeIo(0, pattern(MIB, 1))).catch(() => {});
  await rig.pass(20e9);
  expect(rig.memory.heldBytes).toBeGreaterThan(MIB / 2);
  const good = await rig.connected('tcp');
  await rig.until(good.submit(writeIo(MIB, pattern(MIB, 2))));
  expect(rig.clock.nowNs()).toBeLessThan(23e9);
});

test('a client over RDMA that posts no receives keeps memory only until others wait for it', async () => {
  const rig = await Rig.create({ memory: { bytesMax: MIB, stuckNs: 1e9 } });
  const silent = await rig.connected('rdma', { idleNs: 1e15 });
  const { qp } = rig.rdma!.clientParts;
  qp.postRecv = () => {};
  for (let i = 0; i < 2 * SK_RECEIVES; i++) silent.submit(readIo(0, Buffer.alloc(64 << 10))).catch(() => {});
  await rig.pass(20e9);
  expect(rig.memory.heldBytes).toBeGreaterThan(0);
  expect(rig.server.connections).toBe(1); // Nobody waits but itself.
  const good = await rig.connected('rdma');
  const into = Buffer.alloc(MIB);
  await rig.until(good.submit(readIo(0, into)));
  expect(rig.clock.nowNs()).toBeLessThan(24e9);
});

test('a limit of a disk holds for all clients together, over both transports', async () => {
  const rig = await Rig.create({ server: { limit: { iops: 1000 } }, disk: new MemoryDevice(8 * MIB) });
  const sessions = [await rig.connected('rdma'), await rig.connected('tcp')];
  const begin = rig.clock.nowNs();
  let done = 0;
  for (const session of sessions) {
    for (let i = 0; i < 100; i++) void session.submit(readIo(0, Buffer.alloc(4096))).then(() => done++);
  }
  await rig.pass(100e6);
  expect(done).toBeGreaterThan(130); // A burst of 50, and one a millisecond.
  expect(done).toBeLessThan(160);
  await rig.pass(100e6);
  expect(done).toBe(200);
  expect(rig.clock.nowNs() - begin).toBeLessThan(300e6);
});
