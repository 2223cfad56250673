/** The data of one association in memory is bounded: a host whose disk does not answer costs so much, and takes nothing from others. */

import { describe, expect, it } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { IO } from '../src/opcodes.js';
import { PDU } from '../src/tcp/pdu.js';
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
  expect(world.memory.pool.inUse).toBe(HOST_MIB);

  // The twin: the bound is that of the host, and not of the pool.
  const other = await Host.connect(world, 2);
  const others = writeMib(other, 4);
  await world.pass(5e9);
  expect(disk.begun).toBe(HOST_MIB + 4);

  disk.open();
  await world.until(Promise.all([...writes, ...others]));
  expect(disk.begun).toBe(HOST_MIB + 8 + 4);
  expect(world.memory.pool.inUse).toBe(0);
});

const readMib = (host: Host, count: number) =>
  Array.from({ length: count }, () =>
    host.io.queue.execute({ opcode: IO.READ, nsid: 1, dwords: [0, 0, MIB / 512 - 1], into: Buffer.alloc(MIB) }),
  );

describe('hosts that keep the memory of the target', () => {
  const ATTACKERS = 3;

  /** Hosts at these addresses that take no replies of READs, or send commands and no data. */
  async function attack(addresses: readonly string[], isSending: boolean): Promise<TcpWorld> {
    const world = new TcpWorld({ poolBytesMax: 64 * MIB });
    for (const [i, address] of addresses.entries()) {
      const attacker = await Host.connect(world, i + 1, 1, address);
      const { host, target } = world.pipes.at(-1)!;
      const write = host.write.bind(host);
      host.write = (pieces) => {
        if (Buffer.concat(pieces)[0] === PDU.CAPSULE_CMD) write(pieces);
      };
      if (!isSending) target.write = () => {};
      for (const one of (isSending ? writeMib : readMib)(attacker, HOST_MIB)) one.catch(() => {});
    }
    await world.pass(5e9);
    return world;
  }

  it.each([
    ['take no data', false],
    ['send no data', true],
  ])('at one address have half of it, and others are served at once: they %s', async (_, isSending) => {
    const world = await attack(Array(ATTACKERS).fill('192.0.2.1'), isSending);
    expect(world.memory.heldBytes).toBe(24 * MIB);
    const good = await Host.connect(world, 9, 1, '192.0.2.9');
    const begin = world.clock.nowNs();
    await world.until(Promise.all([...readMib(good, 16), ...writeMib(good, 16)]));
    expect(world.clock.nowNs() - begin).toBeLessThan(1e9);
    expect(world.target.connections.tcp).toBe(2 * ATTACKERS + 2);
  });

  it.each([
    ['take no data', false],
    ['send no data', true],
  ])('at many addresses are ended when others wait: they %s', async (_, isSending) => {
    const addresses = Array.from({ length: ATTACKERS }, (_, i) => `192.0.2.${i + 1}`);
    const world = await attack(addresses, isSending);
    expect(world.memory.heldBytes).toBe(48 * MIB);
    await world.pass(60e9);
    expect(world.target.connections.tcp).toBe(2 * ATTACKERS); // Nobody waits but they.
    const good = await Host.connect(world, 9, 1, '192.0.2.9');
    const begin = world.clock.nowNs();
    await world.until(Promise.all([...readMib(good, 16), ...writeMib(good, 16)]));
    expect(world.clock.nowNs() - begin).toBeLessThan(15e9);
    expect(world.target.connections.tcp).toBeLessThan(2 * ATTACKERS + 2);
    expect(world.memory.heldBytes).toBeLessThanOrEqual(48 * MIB);
  });
});

it('a host that vanishes with data in memory leaves none', async () => {
  const disk = new StuckDisk(DISK_BYTES);
  const world = new TcpWorld({ disk, poolBytesMax: 64 * MIB });
  const host = await Host.connect(world, 1);
  for (const write of writeMib(host, HOST_MIB + 8)) write.catch(() => {});
  await world.pass(5e9);
  expect(world.memory.pool.inUse).toBe(HOST_MIB);
  for (const pipe of world.pipes) pipe.host.destroy();
  await world.pass(1e9);
  disk.open();
  await world.pass(1e9);
  expect(disk.begun).toBe(HOST_MIB);
  expect(world.target.controllers).toBe(0);
  expect(world.memory.pool.inUse).toBe(0);
});
