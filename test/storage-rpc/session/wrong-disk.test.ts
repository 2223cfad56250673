/** Another disk behind the same address: it gets no request, both sides say so, and the right one is waited for. */

import { expect, test } from 'vitest';
import type { DiskIdentity } from '../../../src/storage-rpc/disk/disk-identity.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../sk/rig.js';

const SECOND = 1e9;

/** A disk that counts what reaches it. */
class WatchedDisk extends MemoryDevice {
  override identity: DiskIdentity;
  touched = 0;

  constructor(identity: Partial<DiskIdentity> = {}, sizeBytes = DISK_BYTES) {
    super(sizeBytes);
    this.identity = { uuid: '01234567-89ab-cdef-0123-456789abcdef', generation: 5, name: 'disk', ...identity };
  }

  override async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    this.touched++;
    await super.read(offset, length, into);
  }

  override async write(offset: number, data: Uint8Array): Promise<void> {
    this.touched++;
    await super.write(offset, data);
  }

  override async flush(): Promise<void> {
    this.touched++;
  }
}

/** The server dies and comes back with another disk; what the client had in flight, and asks for now, is under way. */
async function replaced(transport: 'both' | 'tcp', right: WatchedDisk, wrong: WatchedDisk) {
  const serverSays: string[] = [];
  const clientSays: string[] = [];
  const rig = await Rig.create({ disk: right, server: { onNotice: (notice) => serverSays.push(notice) } });
  const dial = { tcp: async () => rig.dialTcp(), ...(transport === 'both' && { rdma: () => rig.dialRdma() }) };
  const host = rig.host({ dial, onNotice: (notice) => clientSays.push(notice) });
  const { session } = await rig.until(host.open());
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  await rig.until(session.submit({ op: 'FLUSH', offset: 0, length: 0 }));
  const boot = async (disk: WatchedDisk) => {
    const old = rig.server;
    rig.boot(disk);
    await rig.until(old.close());
    session.breakConnection('the server died');
  };
  await boot(wrong);
  const write = session.submit(writeIo(4096, pattern(4096, 2)));
  return { rig, host, session, write, boot, serverSays, clientSays };
}

/** Openings of a disk, the present one first. */
const openings = (...marks: Array<[mark: bigint, checkpoint?: number]>) => ({
  openings: marks.map(([mark, checkpoint = 0]) => ({ mark, checkpoint })),
});

const OTHER = { uuid: 'ffffffff-89ab-cdef-0123-456789abcdef', name: 'other' };

test.each(['both', 'tcp'] as const)(
  'over %s: refused for as long as it is there, then everything goes on',
  async (transport) => {
    const [right, wrong] = [new WatchedDisk(), new WatchedDisk(OTHER)];
    const { rig, host, session, write, boot, serverSays, clientSays } = await replaced(transport, right, wrong);
    await rig.pass(120 * SECOND);
    expect(wrong.touched).toBe(0);
    expect(host.outage).toMatchObject({ isWrongDisk: true, reason: expect.stringContaining(OTHER.uuid) });
    expect(clientSays).toEqual([expect.stringMatching(/^REFUSED: .*another disk.*01234567-.*requests wait/)]);
    expect(serverSays).toEqual([
      expect.stringMatching(/refused a client of .*01234567-.* this server has 'other' ffff/),
    ]);
    expect(rig.server.counters.wrongDisks).toBeGreaterThan(20);
    await boot(right);
    await rig.until(write);
    const into = Buffer.alloc(8192);
    await rig.until(session.submit(readIo(0, into)));
    expect(into.equals(Buffer.concat([pattern(4096, 1), pattern(4096, 2)]))).toBe(true);
    expect(wrong.touched).toBe(0);
    expect(host.outage).toBeUndefined();
    expect(clientSays.slice(1)).toEqual([expect.stringMatching(/^the storage server is back after 1\d\d s$/)]);
  },
);

test.each<[string, Partial<DiskIdentity>, number, boolean]>([
  ['of another UUID', OTHER, DISK_BYTES, false],
  ['that has become smaller', {}, DISK_BYTES / 2, false],
  ['that is an older copy', { generation: 4 }, DISK_BYTES, false],
  ['without an identity', { uuid: '00000000-0000-0000-0000-000000000000' }, DISK_BYTES, false],
  ['that was opened again', { generation: 6 }, DISK_BYTES, true],
  ['that has grown', { generation: 6 }, 2 * DISK_BYTES, true],
  ['that has another name now', { generation: 6, name: 'renamed' }, DISK_BYTES, true],
])('a disk %s', async (_, identity, sizeBytes, isRight) => {
  const disk = new WatchedDisk(identity, sizeBytes);
  const { rig, host, write } = await replaced('tcp', new WatchedDisk(), disk);
  let done = false;
  void write.then(
    () => {
      done = true;
    },
    () => {},
  );
  await rig.pass(5 * SECOND);
  expect([done, disk.touched > 0, host.outage === undefined]).toEqual([isRight, isRight, isRight]);
  await rig.until(host.close());
});

test.each<[string, Partial<DiskIdentity>, boolean]>([
  ['is the same', openings([5n, 2], [4n]), true],
  ['was opened again', { generation: 6, ...openings([6n], [5n, 2], [4n]) }, true],
  ['was opened twice', { generation: 7, ...openings([7n], [6n, 9], [5n, 3]) }, true],
  ['was opened so often that nobody knows', { generation: 7, ...openings([7n], [6n]) }, true],
  ['was opened before by a version without marks', { generation: 6, ...openings([6n], [0n]) }, true],
  ['is a backup that was opened as often', openings([0xbadn], [4n]), false],
  ['is a backup that was opened more often', { generation: 7, ...openings([7n], [6n], [0xbadn, 9]) }, false],
  ['is a copy that was made in use, before the last checkpoint', { generation: 6, ...openings([6n], [5n, 1]) }, false],
])('a disk that %s', async (_, identity, isRight) => {
  const before = new WatchedDisk(openings([5n, 2], [4n]));
  const disk = new WatchedDisk(identity);
  const { rig, host, write, serverSays } = await replaced('tcp', before, disk);
  write.catch(() => {});
  await rig.pass(5 * SECOND);
  expect([disk.touched > 0, host.outage === undefined]).toEqual([isRight, isRight]);
  expect(serverSays).toEqual(
    isRight ? [] : [expect.stringMatching(/: this is an(other| older) copy, as |: this is an older copy, made /)],
  );
  await rig.until(host.close());
});

test('a busy client learns of checkpoints, and refuses a copy that was made before', async () => {
  const before = new WatchedDisk(openings([5n]));
  let checkpoints = 0;
  Object.assign(before, {
    checkpoint: async () => {
      before.identity = { ...before.identity, ...openings([5n, ++checkpoints]) };
    },
  });
  const rig = await Rig.create({ disk: before });
  const host = rig.host({ dial: { tcp: async () => rig.dialTcp() } });
  const { session } = await rig.until(host.open());
  for (let k = 0; k < 30; k++) {
    await rig.until(session.submit(writeIo(4096 * k, pattern(4096, k))));
    await rig.pass(SECOND / 5); // Never idle long enough to be asked.
  }
  expect(checkpoints).toBeGreaterThan(3);
  const copy = new WatchedDisk({ generation: 6, ...openings([6n], [5n, 1]) });
  const old = rig.server;
  rig.boot(copy);
  await rig.until(old.close());
  session.breakConnection('the server died');
  session.submit(writeIo(0, pattern(4096, 2))).catch(() => {});
  await rig.pass(3 * SECOND);
  expect(copy.touched).toBe(0);
  expect(host.outage).toMatchObject({
    isWrongDisk: true,
    reason: expect.stringContaining('an older or another copy of the disk that was used, as a restored backup is'),
  });
  await rig.until(host.close());
});

test('of disks without identity only size tells', async () => {
  const anonymous = { uuid: '00000000-0000-0000-0000-000000000000', generation: 0, name: '' };
  for (const [sizeBytes, isRight] of [
    [DISK_BYTES, true],
    [2 * DISK_BYTES, false],
  ] as const) {
    const disk = new WatchedDisk(anonymous, sizeBytes);
    const { rig, host, write } = await replaced('tcp', new WatchedDisk(anonymous), disk);
    write.catch(() => {});
    await rig.pass(5 * SECOND);
    expect(disk.touched > 0).toBe(isRight);
    await rig.until(host.close());
  }
});

test('a client that is told which disk to use takes no other one, not even first', async () => {
  const rig = await Rig.create({ disk: new WatchedDisk(OTHER) });
  const wanted = rig.host({ uuid: '01234567-89ab-cdef-0123-456789abcdef' });
  await expect(rig.until(wanted.open())).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
  const right = rig.host({ uuid: OTHER.uuid });
  await rig.until(right.open());
});
