/** Namespaces that come, go and change their size while hosts use them, in virtual time. */

import { beforeEach, expect, it } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { ADMIN, CNS, FEATURE, IO, LOG } from '../src/opcodes.js';
import { DNR, STATUS } from '../src/status.js';
import type { Subsystem } from '../src/subsystem.js';
import { Host } from './hosts.js';
import { DISK_BYTES, NQN, TcpWorld } from './world.js';

let world: TcpWorld;
let host: Host;
let subsystem: Subsystem;
beforeEach(async () => {
  world = new TcpWorld();
  host = await Host.connect(world, 1);
  subsystem = world.target.subsystem(NQN)!;
  await host.admin.send({ opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.ASYNC_EVENT_CONFIGURATION, 0x100] });
});

const event = () => host.admin.queue.execute({ opcode: ADMIN.ASYNC_EVENT_REQUEST });

async function blocks(nsid: number): Promise<number> {
  const into = Buffer.alloc(4096);
  await host.admin.send({ opcode: ADMIN.IDENTIFY, nsid, dwords: [CNS.NAMESPACE], into });
  return Number(into.readBigUInt64LE(0));
}

it('a namespace that grows has more blocks, which hosts hear of and can use', async () => {
  const told = event();
  const last = { opcode: IO.READ, nsid: 1, dwords: [DISK_BYTES / 512, 0, 0], into: Buffer.alloc(512) };
  expect(await host.io.status(last)).toBe(STATUS.LBA_OUT_OF_RANGE | DNR);
  await subsystem.resizeNamespace(1, new MemoryDevice(2 * DISK_BYTES));
  expect((await world.until(told)).result).toBe(0x04_00_02n);
  expect((await host.log(LOG.CHANGED_NAMESPACES, 4096)).readUInt32LE(0)).toBe(1);
  expect(await blocks(1)).toBe((2 * DISK_BYTES) / 512);
  expect(await host.io.status(last)).toBe(0);
});

it('a disk of 100 bytes more than its blocks is a namespace of whole blocks, all of which can be used', async () => {
  const blockCount = DISK_BYTES / 512;
  await subsystem.resizeNamespace(1, new MemoryDevice(DISK_BYTES + 100));
  expect(await blocks(1)).toBe(blockCount);
  const status = (lba: number) =>
    host.io.status({ opcode: IO.READ, nsid: 1, dwords: [lba, 0, 0], into: Buffer.alloc(512) });
  expect(await status(blockCount - 1)).toBe(0);
  expect(await status(blockCount)).toBe(STATUS.LBA_OUT_OF_RANGE | DNR);
});

it('a namespace that is gone answers nothing, and the disk is free only when it rests', async () => {
  let finish = () => {};
  const slow = new MemoryDevice(DISK_BYTES);
  slow.write = () =>
    new Promise<void>((go) => {
      finish = go;
    });
  subsystem.addNamespace({ nsid: 2, disk: slow, uuid: Buffer.alloc(16, 2) });
  const out = Buffer.alloc(512);
  const writing = host.io.queue.execute({ opcode: IO.WRITE, nsid: 2, dwords: [0, 0, 0], out });
  await world.pass(1e6);
  let isFree = false;
  const removed = subsystem.removeNamespace(2).then(() => {
    isFree = true;
  });
  await world.pass(1e9);
  expect(isFree).toBe(false);
  const read = { opcode: IO.READ, nsid: 2, dwords: [0, 0, 0], into: Buffer.alloc(512) };
  expect(await host.io.status(read)).toBe(STATUS.INVALID_NAMESPACE | DNR);
  expect(await blocks(2)).toBe(0);
  finish();
  await world.until(writing);
  await removed;
});

it('the disk before a change of size is free only when it rests', async () => {
  let finish = () => {};
  world.disk.read = () =>
    new Promise<void>((go) => {
      finish = go;
    });
  const into = Buffer.alloc(512);
  const reading = host.io.queue.execute({ opcode: IO.READ, nsid: 1, dwords: [0, 0, 0], into });
  await world.pass(1e6);
  let isFree = false;
  const resized = subsystem.resizeNamespace(1, new MemoryDevice(DISK_BYTES / 2)).then(() => {
    isFree = true;
  });
  expect(await host.write()).toBe(0); // The new one serves already.
  expect(isFree).toBe(false);
  finish();
  await world.until(reading);
  await resized;
});

it('what cannot be is refused', async () => {
  await expect(subsystem.resizeNamespace(2, new MemoryDevice(4096))).rejects.toMatchObject({
    code: 'ERR_ROCE_NOT_FOUND',
  });
  await expect(subsystem.resizeNamespace(1, new MemoryDevice(511))).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
  });
  await expect(subsystem.removeNamespace(2)).rejects.toMatchObject({ code: 'ERR_ROCE_NOT_FOUND' });
  expect(await host.write()).toBe(0);
});
