/** Named disks and single writers, over both transports, in virtual time: who is refused, who takes over, and what a fenced writer can still do: nothing. */

import { expect, test } from 'vitest';
import { BlockDeviceError } from '../../../src/storage-rpc/disk/block-device.js';
import type { LeaseRecord, LeaseStore } from '../../../src/storage-rpc/disk/lease-store.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { HostConnections, HostConnectionsOptions } from '../../../src/storage-rpc/session/host-connections.js';
import { LeaseRequest } from '../../../src/storage-rpc/sk/lease-request.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../sk/rig.js';

const SECOND = 1e9;
const TRANSPORTS = ['rdma', 'tcp'] as const;
type Transport = (typeof TRANSPORTS)[number];

let seed = 0;

/** A client of its own, with its own random numbers. */
function client(rig: Rig, transport: Transport, options: Partial<HostConnectionsOptions> = {}): HostConnections {
  const dial = transport === 'rdma' ? { rdma: () => rig.dialRdma() } : { tcp: async () => rig.dialTcp() };
  const random = rig.random.stream(`client ${++seed}`);
  return rig.host({ dial, random, claim: { access: 'write', label: `gateway ${seed}` }, ...options });
}

/** A disk whose writes wait until they are let through. */
class SlowDisk extends MemoryDevice {
  readonly written: number[] = [];
  let: (() => void) | undefined;

  override async write(offset: number, data: Uint8Array): Promise<void> {
    if (offset !== 0) {
      await new Promise<void>((resolve) => {
        this.let = resolve;
      });
    }
    await super.write(offset, data);
    this.written.push(offset);
  }
}

/** Cuts the client off from the server, and keeps it from coming back until `back`. */
function gate(rig: Rig, transport: Transport) {
  let isOpen = true;
  const check = () => {
    if (!isOpen) throw new Error('no way to the server');
  };
  const dial: HostConnectionsOptions['dial'] =
    transport === 'rdma'
      ? {
          rdma: async () => {
            check();
            return rig.dialRdma();
          },
        }
      : {
          tcp: async () => {
            check();
            return rig.dialTcp();
          },
        };
  return {
    dial,
    close: () => {
      isOpen = false;
    },
    open: () => {
      isOpen = true;
    },
  };
}

test.each(TRANSPORTS)('over %s a second writer is refused, and says who the first is', async (transport) => {
  const rig = await Rig.create({});
  const first = client(rig, transport);
  const { session } = await rig.until(first.open());
  await rig.pass(60 * SECOND); // An idle client is heard, too.
  const second = client(rig, transport);
  await expect(rig.until(second.open())).rejects.toMatchObject({
    code: 'ERR_ROCE_BUSY',
    message: expect.stringMatching(/in use by gateway \d+/),
  });
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  expect(rig.server.counters).toMatchObject({ leased: 1, takenOver: 0 });
  await rig.until(second.close());
  await rig.until(first.close());
  // A disk that was closed is free at once.
  const third = client(rig, transport);
  await rig.until(third.open());
  await rig.until(third.close());
});

test('sessions of one client share its lease, clients that share write together, and readers only read', async () => {
  const rig = await Rig.create({});
  const [one, other] = [0, 1].map(() => client(rig, 'tcp', { claim: { access: 'shared' } }));
  await rig.until(one.open());
  await rig.until(one.open());
  const { session } = await rig.until(other.open());
  await rig.until(session.submit(writeIo(0, pattern(4096, 2))));
  const reader = await rig.until(client(rig, 'tcp', { claim: { access: 'read' } }).open());
  const into = Buffer.alloc(4096);
  await rig.until(reader.session.submit(readIo(0, into)));
  expect(into.equals(pattern(4096, 2))).toBe(true);
  expect(reader.session.server?.readOnly).toBe(true);
  for (const op of ['WRITE', 'ZERO', 'TRIM'] as const) {
    const io = op === 'WRITE' ? writeIo(0, pattern(4096, 3)) : { op, offset: 0, length: 4096 };
    await expect(rig.until(reader.session.submit(io)), op).rejects.toMatchObject({ errno: 'EPERM' });
  }
});

test.each(TRANSPORTS)('over %s a dead writer is followed; when it comes back it can do nothing', async (transport) => {
  const disk = new SlowDisk(DISK_BYTES);
  const says: string[] = [];
  const rig = await Rig.create({ disk, server: { onNotice: (notice) => says.push(notice) } });
  const way = gate(rig, transport);
  const oldSays: string[] = [];
  const old = client(rig, transport, { dial: way.dial, onNotice: (notice) => oldSays.push(notice) });
  const { session } = await rig.until(old.open());
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  // One write is at the disk, one waits in the client, when its way to the server ends.
  const late = [session.submit(writeIo(4096, pattern(4096, 66)))];
  await rig.pass(SECOND / 10);
  way.close();
  session.breakConnection('cut off');
  late.push(session.submit(writeIo(0, pattern(4096, 66))));
  const outcomes = Promise.allSettled(late);

  const newSays: string[] = [];
  // A queue pair that vanishes tells nobody: the server takes the client for connected.
  const next = client(rig, transport, { standby: transport === 'rdma', onNotice: (notice) => newSays.push(notice) });
  let isOpen = false;
  const opening = next.open().then((reconnector) => {
    isOpen = true;
    return reconnector;
  });
  await rig.pass(8 * SECOND);
  expect(isOpen).toBe(false);
  const why = transport === 'rdma' ? 'standing by' : 'its writer is gone, and its lease ends in \\d+ s';
  expect(newSays).toEqual([expect.stringMatching(new RegExp(`in use by gateway \\d+: ${why}`))]);
  await rig.pass(10 * SECOND);
  // The lease is over, but a write of the old one is still at the disk.
  expect([isOpen, rig.server.counters.takenOver]).toEqual([false, 1]);
  disk.let?.();
  const reconnector = await rig.until(opening);
  await rig.until(reconnector.session.submit(writeIo(0, pattern(4096, 2))));
  expect(says).toEqual([expect.stringMatching(/gateway \d+ takes over the disk: its last writer was silent/)]);

  way.open();
  const [first, second] = await rig.until(outcomes);
  expect([first.status, second.status]).toEqual(['rejected', 'rejected']);
  expect((first as PromiseRejectedResult).reason).toMatchObject({ errno: 'EIO' });
  expect(oldSays.filter((notice) => notice.startsWith('FENCED'))).toEqual([
    expect.stringMatching(/^FENCED: gateway \d+ has taken over the disk.*requests fail from now on/),
  ]);
  await expect(rig.until(session.submit(writeIo(0, pattern(4096, 66))))).rejects.toMatchObject({ errno: 'EIO' });
  await rig.pass(60 * SECOND);
  const into = Buffer.alloc(4096);
  await rig.until(reconnector.session.submit(readIo(0, into)));
  expect(into.equals(pattern(4096, 2))).toBe(true);
  expect(disk.written).toEqual([0, 4096, 0]);
  expect(rig.server.counters.takenOver).toBe(1);
});

test('a writer that was away for longer than its lease goes on if nobody has followed', async () => {
  const rig = await Rig.create({});
  const way = gate(rig, 'tcp');
  const host = client(rig, 'tcp', { dial: way.dial });
  const { session } = await rig.until(host.open());
  way.close();
  session.breakConnection('cut off');
  const write = session.submit(writeIo(0, pattern(4096, 1)));
  await rig.pass(120 * SECOND);
  way.open();
  await rig.until(write);
});

test('one that stands by takes over as soon as the writer has ended', async () => {
  const rig = await Rig.create({});
  const first = client(rig, 'tcp');
  await rig.until(first.open());
  const says: string[] = [];
  const standby = client(rig, 'tcp', { standby: true, onNotice: (notice) => says.push(notice) });
  let isOpen = false;
  const opening = standby.open().then(() => {
    isOpen = true;
  });
  await rig.pass(60 * SECOND);
  expect([isOpen, says]).toEqual([false, [expect.stringMatching(/standing by/)]]);
  await rig.until(first.close());
  await rig.pass(2 * SECOND);
  expect(isOpen).toBe(true);
  await opening;
});

test('one that stands by outlives a restart of the server, and does not get ahead of the writer', async () => {
  const rig = await Rig.create({});
  const way = gate(rig, 'tcp');
  const first = client(rig, 'tcp', { dial: way.dial });
  const { session } = await rig.until(first.open());
  const standbyWay = gate(rig, 'tcp');
  const standby = client(rig, 'tcp', { dial: standbyWay.dial, standby: true });
  let isOpen = false;
  const opening = standby.open().then(() => {
    isOpen = true;
  });
  await rig.pass(3 * SECOND);
  // The server is away for longer than the lease; the writer comes back last.
  const old = rig.server;
  way.close();
  standbyWay.close();
  rig.boot(rig.disk);
  await rig.until(old.close());
  session.breakConnection('the server died');
  const write = session.submit(writeIo(0, pattern(4096, 1)));
  await rig.pass(30 * SECOND);
  rig.boot(rig.disk);
  standbyWay.open();
  await rig.pass(5 * SECOND);
  way.open();
  await rig.until(write);
  await rig.pass(30 * SECOND);
  expect([isOpen, rig.server.counters.takenOver]).toEqual([false, 0]);
  await rig.until(first.close());
  await rig.until(opening);
});

/** A disk that keeps its leases, or forgets them. */
class KeepingDisk extends MemoryDevice {
  #kept: LeaseRecord | undefined;
  saves = 0;
  isBroken = false;
  readonly leaseStore: LeaseStore;

  constructor(keeps: boolean) {
    super(DISK_BYTES);
    const kept = () => (keeps ? this.#kept : undefined);
    this.leaseStore = {
      get initial() {
        return kept();
      },
      save: async (record) => {
        if (this.isBroken) throw new BlockDeviceError('EIO', 'no');
        this.saves++;
        this.#kept = record;
      },
    };
  }
}

test.each([
  ['kept', true],
  ['lost', false],
] as const)('two restarts and another writer between them: with leases that are %s', async (_, keeps) => {
  const disk = new KeepingDisk(keeps);
  const rig = await Rig.create({ disk });
  const way = gate(rig, 'tcp');
  const says: string[] = [];
  const first = client(rig, 'tcp', { dial: way.dial, onNotice: (notice) => says.push(notice) });
  const { session } = await rig.until(first.open());
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  way.close();
  session.breakConnection('cut off');
  const late = session.submit(writeIo(0, pattern(4096, 66))).catch((error: Error) => error);
  const restart = async () => {
    const old = rig.server;
    rig.boot(disk);
    await rig.until(old.close());
  };

  await restart();
  const other = client(rig, 'tcp');
  const reconnector = await rig.until(other.open());
  // Who had the disk is waited for, where that is known.
  expect(rig.server.counters.leased > 0).toBe(keeps);
  await rig.until(reconnector.session.submit(writeIo(0, pattern(4096, 2))));
  await rig.until(other.close());
  await restart();
  way.open();
  const outcome = await rig.until(late);
  const into = Buffer.alloc(4096);
  await disk.read(0, 4096, into);
  expect(into.equals(pattern(4096, keeps ? 2 : 66))).toBe(true);
  if (!keeps) return;
  expect(outcome).toMatchObject({ errno: 'EIO' });
  expect(says.filter((notice) => notice.startsWith('FENCED'))).toHaveLength(1);
  // Once for each writer, and once for the one that ended; connections that come again change nothing.
  expect(disk.saves).toBe(3);
});

test('a lease that cannot be stored is not granted, and the operator hears why', async () => {
  const disk = new KeepingDisk(true);
  disk.isBroken = true;
  const notices: string[] = [];
  const rig = await Rig.create({ disk, server: { onNotice: (notice) => notices.push(notice) } });
  const host = client(rig, 'tcp');
  await expect(rig.until(host.open())).rejects.toThrow(/does not resume the session: EIO/);
  expect(notices[0]).toMatch(/^refused gateway \d+: its lease of the disk cannot be stored: EIO/);
  disk.isBroken = false;
  await rig.until(client(rig, 'tcp', { standby: true }).open());
  expect(disk.saves).toBe(1);
});

test('disks have names; who names none has the only one, and one that is removed is gone', async () => {
  const rig = await Rig.create({ server: { disks: [] } });
  const [a, b] = [new MemoryDevice(DISK_BYTES), new MemoryDevice(2 * DISK_BYTES)];
  rig.server.disks.add({ name: 'a', device: a });
  const first = await rig.until(client(rig, 'tcp').open());
  expect(first.session.server?.disk).toMatchObject({ sizeBytes: DISK_BYTES, uuid: a.identity.uuid });
  rig.server.disks.add({ name: 'b', device: b, readOnly: true });
  expect(() => rig.server.disks.add({ name: 'b', device: b })).toThrow(/already/);
  const nameless = client(rig, 'tcp');
  await expect(rig.until(nameless.open())).rejects.toMatchObject({ code: 'ERR_ROCE_NOT_FOUND' });
  const wrong = client(rig, 'tcp', { claim: { name: 'c' } });
  await expect(rig.until(wrong.open())).rejects.toThrow(/no disk 'c'/);
  // Writers of a disk that can only be read are readers: any number of them.
  const named = () => rig.until(client(rig, 'tcp', { claim: { name: 'b', access: 'write' } }).open());
  const [second, third] = [await named(), await named()];
  expect(second.session.server).toMatchObject({ readOnly: true, disk: { uuid: b.identity.uuid } });
  await expect(rig.until(third.session.submit(writeIo(0, pattern(4096, 1))))).rejects.toMatchObject({ errno: 'EPERM' });
  await rig.until(first.session.submit(writeIo(0, pattern(4096, 1))));
  expect(await rig.until(rig.server.removeDisk('a'))).toBe(a);
  await expect(rig.until(client(rig, 'tcp', { claim: { name: 'a' } }).open())).rejects.toThrow(/no disk 'a'/);
});

test('a disk is exchanged under its clients: requests wait, none is lost', async () => {
  const rig = await Rig.create({ server: { disks: [] } });
  const old = new SlowDisk(DISK_BYTES);
  const disk = rig.server.disks.add({ name: 'a', device: old });
  const { session } = await rig.until(client(rig, 'tcp').open());
  const atDisk = session.submit(writeIo(4096, pattern(4096, 1)));
  await rig.pass(SECOND / 10);
  const larger = new MemoryDevice(2 * DISK_BYTES);
  const exchanged = disk.exchange(async () => larger);
  const waiting = session.submit(writeIo(0, pattern(4096, 2)));
  await rig.pass(SECOND);
  expect(old.written).toEqual([]);
  old.let?.();
  await rig.until(Promise.all([atDisk, waiting, exchanged]));
  expect(old.written).toEqual([4096]);
  const into = Buffer.alloc(4096);
  await larger.read(0, 4096, into);
  expect(into.equals(pattern(4096, 2))).toBe(true);
});

test.each(TRANSPORTS)('over %s a client that asks learns that its disk has grown, and uses it', async (transport) => {
  const rig = await Rig.create({ server: { disks: [] } });
  const disk = rig.server.disks.add({ name: 'a', device: new MemoryDevice(DISK_BYTES) });
  const { session } = await rig.until(client(rig, transport).open());
  const remote = rig.remoteDisk(session);
  const view = remote.view();
  const beyond = () => rig.until(remote.write(DISK_BYTES, pattern(4096, 1)));
  await rig.until(disk.exchange(async () => new MemoryDevice(2 * DISK_BYTES)));
  expect(remote.sizeBytes).toBe(DISK_BYTES);
  await expect(beyond()).rejects.toMatchObject({ errno: 'ENOSPC' });
  await rig.until(Promise.all([remote.refresh(), remote.refresh()]));
  expect([remote.sizeBytes, view.sizeBytes]).toEqual([2 * DISK_BYTES, 2 * DISK_BYTES]);
  await beyond();
  // Who asks while there is no connection does not wait for one.
  session.onLost = () => {};
  session.breakConnection('a test');
  await remote.refresh();
});

test('a session that is closed twice at once ends once, frees the disk, and can do nothing afterwards', async () => {
  const disk = new SlowDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const session = await rig.connected('tcp', {
    claim: new LeaseRequest(rig.random.stream('claim'), { access: 'write' }),
  });
  const write = session.submit(writeIo(4096, pattern(4096, 1)));
  const closes = [0, 1].map(() => session.submit({ op: 'CLOSE', offset: 0, length: 0 }));
  await rig.pass(SECOND);
  disk.let?.();
  await rig.until(Promise.all([write, ...closes]));
  await expect(rig.until(session.submit(writeIo(0, pattern(4096, 2))))).rejects.toMatchObject({ errno: 'EIO' });
  expect(disk.written).toEqual([4096]);
  const next = client(rig, 'tcp');
  await rig.until(next.open());
  await rig.until(next.close());
});
