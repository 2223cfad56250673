/** The data of one association in memory is bounded: a host whose disk does not answer costs so much, and takes nothing from others. */

import { expect, it } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { IO } from '../src/opcodes.js';
import { Host } from './hosts.js';
import { DISK_BYTES, TcpWorld } from './world.js';

const MIB = 1 << 20;
const HOST_MIB = 16;

/** Writes begin, and end when they may. */
class StuckDisk extends MemoryDevice {
  /** Writes that have their data in memory. */
  begun = 0;
  #go = () => {};
  readonly #isOpen = new Promise<void>((go) => {
    this.#go = go;
  });

  open(): void {
    this.#go();
  }

  override async write(offset: number, data: Uint8Array): Promise<void> {
    this.begun++;
    await this.#isOpen;
    await super.write(offset, data);
  }
}

function writeMib(host: Host, count: number) {
  const out = Buffer.alloc(MIB, host.number);
  const dwords = [0, 0, MIB / 512 - 1];
  return Array.from({ length: count }, () => host.io.queue.execute({ opcode: IO.WRITE, nsid: 1, dwords, out }));
}

it('a host has data of 16 MiB in memory, whatever it sends; what is more waits, and is executed', async () => {
  const disk = new StuckDisk(DISK_BYTES);
  const world = new TcpWorld({ disk, poolBytesMax: 64 * MIB });
  const host = await Host.connect(world, 1);
  const writes = writeMib(host, HOST_MIB + 8);
  await world.pass(5e9);
  expect(disk.begun).toBe(HOST_MIB);
  expect(world.pool.inUse).toBe(HOST_MIB);

  // The twin: the bound is that of the host, and not of the pool.
  const other = await Host.connect(world, 2);
  const others = writeMib(other, 4);
  await world.pass(5e9);
  expect(disk.begun).toBe(HOST_MIB + 4);

  disk.open();
  await world.until(Promise.all([...writes, ...others]));
  expect(disk.begun).toBe(HOST_MIB + 8 + 4);
  expect(world.pool.inUse).toBe(0);
});

it('a host that vanishes with data in memory leaves none', async () => {
  const disk = new StuckDisk(DISK_BYTES);
  const world = new TcpWorld({ disk, poolBytesMax: 64 * MIB });
  const host = await Host.connect(world, 1);
  for (const write of writeMib(host, HOST_MIB + 8)) write.catch(() => {});
  await world.pass(5e9);
  expect(world.pool.inUse).toBe(HOST_MIB);
  for (const pipe of world.pipes) pipe.host.destroy();
  await world.pass(1e9);
  disk.open();
  await world.pass(1e9);
  expect(disk.begun).toBe(HOST_MIB);
  expect(world.target.controllers).toBe(0);
  expect(world.pool.inUse).toBe(0);
});
