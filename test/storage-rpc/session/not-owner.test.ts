/** A server that has lost its disk to another one says so: clients that follow go on there, and others are told of an I/O error. */

import { expect, test } from 'vitest';
import { type BlockDevice, NotOwnerError } from '../../../src/storage-rpc/disk/block-device.js';
import type { DiskIdentity } from '../../../src/storage-rpc/disk/disk-identity.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { SkServer } from '../../../src/storage-rpc/sk/sk-server.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../sk/rig.js';

const SECOND = 1e9;

/** What all servers of the disk share. */
class SharedStore extends MemoryDevice {
  /** Stays open. */
  override async close(): Promise<void> {}
}

/** The disk at one server. */
class OwnedDisk extends SharedStore {
  readonly #store: BlockDevice;
  override identity: DiskIdentity = { uuid: '01234567-89ab-cdef-0123-456789abcdef', generation: 5, name: 'disk' };
  isOurs = true;

  constructor(store: BlockDevice) {
    super(DISK_BYTES);
    this.#store = store;
  }

  get notOwner(): NotOwnerError | undefined {
    return this.isOurs ? undefined : new NotOwnerError('another server has it');
  }

  override async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    if (!this.isOurs) throw this.notOwner;
    await this.#store.read(offset, length, into);
  }

  override async write(offset: number, data: Uint8Array): Promise<void> {
    if (!this.isOurs) throw this.notOwner;
    await this.#store.write(offset, data);
  }
}

/** A client, and two servers of which the first one has the disk. */
async function twoServers(follows: boolean, transports: readonly ('rdma' | 'tcp')[]) {
  const store = new SharedStore(DISK_BYTES);
  const disks = [new OwnedDisk(store), new OwnedDisk(store)];
  const rig = await Rig.create({ disk: disks[0] });
  const servers: SkServer[] = [rig.server];
  servers.push(rig.boot(disks[1]));
  disks[1].isOurs = false;
  let asked: SkServer | undefined;
  const host = rig.host({
    dial: {
      ...(transports.includes('rdma') && { rdma: () => rig.dialRdma() }),
      ...(transports.includes('tcp') && { tcp: async () => rig.dialTcp() }),
    },
    session: { follows },
    locate: async () => {
      const owner = disks.findIndex(({ isOurs }) => isOurs);
      if (owner >= 0) rig.server = servers[owner];
      const isElsewhere = asked !== undefined && asked !== rig.server;
      asked = rig.server;
      return isElsewhere;
    },
  });
  const { session } = await rig.until(host.open());
  const moveTo = (to: number) => {
    for (const [k, disk] of disks.entries()) disk.isOurs = k === to;
  };
  const write = (at: number, value: number) => rig.until(session.submit(writeIo(at, pattern(4096, value))));
  const read = async (at: number) => {
    const into = Buffer.alloc(4096);
    await rig.until(session.submit(readIo(at, into)));
    return into;
  };
  return { rig, host, session, disks, servers, moveTo, write, read };
}

test.each([[['rdma', 'tcp']], [['tcp']]] as const)(
  'over %s: a client that follows goes on at the owner',
  async (transports) => {
    const { rig, host, session, moveTo, write, read } = await twoServers(true, transports);
    await write(0, 1);
    moveTo(1);
    await write(4096, 2);
    expect(await read(0)).toEqual(Buffer.from(pattern(4096, 1)));
    expect(await read(4096)).toEqual(Buffer.from(pattern(4096, 2)));
    // The server has answered, so nothing is wrong with the way to it.
    expect(host.counters.failovers).toBe(0);
    expect(session.transport).toBe(transports[0]);
    await rig.until(host.close());
  },
);

test('a client that asks for nothing hears of it by the answer to its next PING', async () => {
  const { rig, host, session, servers, moveTo, write } = await twoServers(true, ['rdma']);
  await write(0, 1);
  moveTo(1);
  await rig.pass(3 * SECOND);
  expect(servers[1].connections).toBe(1);
  expect(session.transport).toBe('rdma');
  // These connections have no control connection that tells the first server of the end.
  await rig.pass(90 * SECOND);
  expect(servers.map(({ connections }) => connections)).toEqual([0, 1]);
  await rig.until(host.close());
});

test('there and back: a server that has the disk again begins anew', async () => {
  const { rig, host, servers, disks, moveTo, write, read } = await twoServers(true, ['rdma', 'tcp']);
  for (let k = 0; k < 5; k++) await write(0, k);
  moveTo(1);
  await write(0, 5);
  await rig.until(servers[0].renewDisk(disks[0]));
  moveTo(0);
  await write(0, 6);
  expect(await read(0)).toEqual(Buffer.from(pattern(4096, 6)));
  await rig.until(host.close());
});

test('there and back to one that does not: it takes requests for those of long ago', async () => {
  const { rig, host, moveTo, write } = await twoServers(true, ['rdma', 'tcp']);
  for (let k = 0; k < 5; k++) await write(0, k);
  moveTo(1);
  await write(0, 5);
  moveTo(0);
  await expect(write(0, 6)).rejects.toThrow('the server no longer understands this session');
  await rig.until(host.close());
});

test('a client that does not follow is told of an I/O error, and goes on when the server has the disk again', async () => {
  const { rig, host, session, disks, write } = await twoServers(false, ['rdma', 'tcp']);
  await write(0, 1);
  disks[0].isOurs = false;
  await expect(write(0, 2)).rejects.toMatchObject({ errno: 'EIO' });
  session.breakConnection('the network failed');
  await expect(write(0, 2)).rejects.toMatchObject({ errno: 'EIO' });
  disks[0].isOurs = true;
  await write(0, 2);
  await rig.until(host.close());
});
