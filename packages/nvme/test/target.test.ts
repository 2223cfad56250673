/** An NVMe target under a host of ours, over TCP in virtual time. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IpAddress } from '../../../src/packet/address.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NvmeDisk } from '../src/host/nvme-disk.js';
import { DISCOVERY_NQN, LOG } from '../src/opcodes.js';
import { DNR, NvmeStatusError, STATUS } from '../src/status.js';
import { DISK_BYTES, HOST_NQN, NQN, OTHER_NQN, TcpWorld } from './world.js';

async function statusOf(work: Promise<unknown>): Promise<number> {
  try {
    await work;
    return 0;
  } catch (error) {
    if (error instanceof NvmeStatusError) return error.status;
    throw error;
  }
}

describe('a target over TCP', () => {
  let world: TcpWorld;
  beforeEach(() => {
    world = new TcpWorld();
  });
  afterEach(() => world.until(world.target.close()));

  it('tells a host who it is and what it has', async () => {
    const host = await world.connect();
    expect(host.identity).toMatchObject({
      id: 1,
      model: 'rocev2',
      serial: '0123456789',
      nqn: NQN,
      version: '1.4',
      transferBytesMax: 1 << 20,
      inCapsuleBytes: 8192,
      nsidMax: 1024,
    });
    expect(await world.until(host.namespaces())).toEqual([
      {
        nsid: 1,
        blockBytes: 512,
        sizeBytes: DISK_BYTES,
        readOnly: false,
        nguid: '00112233445566778899aabbccddeeff',
        eui64: '0000000000000000',
        uuid: '00112233445566778899aabbccddeeff',
      },
    ]);
    await world.until(host.close());
    await world.pass(1e6); // The other end hears of it.
    expect(world.target.controllers).toBe(0);
    expect(world.memory.pool.inUse).toBe(0);
  });

  it('lists its subsystems for hosts that may use them, with a generation that changes', async () => {
    const address = IpAddress.parse('192.0.2.7');
    world.target.ports = [
      { transport: 'rdma', address, port: 4420 },
      { transport: 'tcp', address, port: 4421 },
    ];
    const host = await world.connect({ nqn: DISCOVERY_NQN, ioQueues: 0 });
    expect(await world.until(host.discover())).toEqual([
      { nqn: NQN, transport: 'rdma', address: '192.0.2.7', service: '4420', subtype: 'nvm' },
      { nqn: NQN, transport: 'tcp', address: '192.0.2.7', service: '4421', subtype: 'nvm' },
      { nqn: OTHER_NQN, transport: 'rdma', address: '192.0.2.7', service: '4420', subtype: 'nvm' },
      { nqn: OTHER_NQN, transport: 'tcp', address: '192.0.2.7', service: '4421', subtype: 'nvm' },
    ]);
    world.target.ports = [];
    expect(await world.until(host.discover())).toEqual([]);
    await world.until(host.close());
  });

  it('gives a log page in pieces of the size that the controller allows, with one answer for a log that moves', async () => {
    const address = IpAddress.parse('192.0.2.7');
    world.target.ports = Array.from({ length: 20 }, (_, i) => ({ transport: 'tcp', address, port: 4420 + i }));
    const host = await world.connect({ nqn: DISCOVERY_NQN, ioQueues: 0 });
    const whole = await world.until(host.discover());
    const pages: number[] = [];
    const { logPage } = host;
    host.identity = { ...host.identity, transferBytesMax: 4096 };
    expect(await world.until(host.discover())).toEqual(whole);
    expect(whole).toHaveLength(40);
    let generation = 0;
    host.logPage = async (id, bytes) => {
      pages.push(bytes);
      const page = await logPage.call(host, id, bytes);
      page.writeBigUInt64LE(BigInt(generation++), 0);
      return page;
    };
    await expect(world.until(host.discover())).rejects.toThrow('the discovery log changed during each of 10 attempts');
    expect(pages.length).toBeLessThanOrEqual(30);
    host.logPage = async (_, bytes) => {
      const page = Buffer.alloc(bytes);
      page.writeBigUInt64LE(2n ** 63n, 8);
      return page;
    };
    await expect(world.until(host.discover())).rejects.toThrow(/the discovery log has 9223372036854776000 entries/);
  });

  it('does not show a subsystem to a host that may not use it, nor lets it connect', async () => {
    world = new TcpWorld({ hosts: [`${HOST_NQN}2`] });
    world.target.ports = [{ transport: 'tcp', address: IpAddress.parse('192.0.2.7'), port: 4420 }];
    const stranger = await world.connect({ nqn: DISCOVERY_NQN, ioQueues: 0 });
    expect((await world.until(stranger.discover())).map(({ nqn }) => nqn)).toEqual([OTHER_NQN]);
    expect(await statusOf(world.connect())).toBe(STATUS.CONNECT_INVALID_HOST | DNR);
    const friend = await world.connect({ hostNqn: `${HOST_NQN}2` });
    expect(friend.identity.nqn).toBe(NQN);
  });

  it('refuses a subsystem that there is not', async () => {
    expect(await statusOf(world.connect({ nqn: `${NQN}x` }))).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
    expect(world.target.controllers).toBe(0);
  });

  it('counts what hosts read and write in its SMART log', async () => {
    const host = await world.connect();
    const [ns] = await world.until(host.namespaces());
    const disk = new NvmeDisk(host, ns, () => host.close());
    await world.until(disk.write(0, Buffer.alloc(1 << 20, 7)));
    await world.until(disk.read(0, 4096, Buffer.alloc(4096)));
    const page = await world.until(host.logPage(LOG.SMART, 512));
    expect(page.readUInt16LE(1)).toBe(300);
    expect([32, 48, 64, 80].map((at) => Number(page.readBigUInt64LE(at)))).toEqual([1, 3, 1, 1]);
    await world.until(disk.close());
  });

  it('ends a controller whose host falls silent, and keeps one whose host sends keep-alives', async () => {
    await world.connect({ keepAliveMs: 5000 });
    await world.pass(60e9);
    expect(world.target.controllers).toBe(1);
    const [{ host }] = world.pipes;
    host.write = () => {}; // Nothing more comes from the host's admin queue.
    await world.pass(8e9);
    expect(world.target.controllers).toBe(0);
    expect(world.target.connections.tcp).toBe(0);
  });

  it('ends a connection that does not say what it wants', async () => {
    world.pipe();
    await world.pass(9e9);
    expect(world.target.connections.tcp).toBe(1);
    await world.pass(2e9);
    expect(world.target.connections.tcp).toBe(0);
  });

  it('refuses writes of a read-only namespace', async () => {
    world = new TcpWorld({ readOnly: true });
    const disk = await world.openDisk();
    await expect(world.until(disk.write(0, Buffer.alloc(512)))).rejects.toThrow('EPERM');
    await expect(world.until(disk.trim(0, 4096))).rejects.toThrow('EPERM');
    await world.until(disk.read(0, 512, Buffer.alloc(512)));
  });

  it('answers with a medium error when its disk fails, and goes on', async () => {
    const broken = new MemoryDevice(DISK_BYTES);
    world = new TcpWorld({ disk: broken });
    const host = await world.connect();
    const [ns] = await world.until(host.namespaces());
    const disk = new NvmeDisk(host, ns, () => host.close());
    await broken.close();
    await expect(world.until(disk.read(0, 512, Buffer.alloc(512)))).rejects.toThrow('namespace not ready');
    expect((await world.until(host.namespaces())).length).toBe(1);
  });

  it('moves more data at once than its pool holds', async () => {
    world = new TcpWorld({ poolBytesMax: 4 << 20 });
    const disk = await world.openDisk();
    const data = Array.from({ length: 24 }, (_, i) => Buffer.alloc(256 << 10, i + 1));
    await world.until(Promise.all(data.map((bytes, i) => disk.write(i * bytes.length, bytes))));
    const read = data.map((bytes) => Buffer.alloc(bytes.length));
    await world.until(Promise.all(read.map((into, i) => disk.read(i * into.length, into.length, into))));
    expect(read.every((bytes, i) => bytes.equals(data[i]))).toBe(true);
    expect(world.memory.pool.registeredBytes).toBeLessThanOrEqual(4 << 20);
    await world.until(disk.close());
    expect(world.memory.pool.inUse).toBe(0);
  });
});
