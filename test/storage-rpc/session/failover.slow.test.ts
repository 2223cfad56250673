/** Requests survive their connection: failover in both directions, in virtual time. */

import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { RemoteDisk } from '../../../src/storage-rpc/sk/remote-disk.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../sk/rig.js';
import { CountingDisk, checkFailovers } from './check-failovers.js';

const SECOND = 1e9;

test('starts on RDMA, fails over to TCP when nothing gets through, and returns when it has healed', async () => {
  const rig = await Rig.create();
  const host = rig.host();
  const { session } = await rig.until(host.open());
  expect(session.transport).toBe('rdma');
  rig.cut();
  const data = pattern(65_536, 1);
  await rig.until(session.submit(writeIo(0, data)));
  expect([session.transport, host.state]).toEqual(['tcp', 'HOLD_DOWN']);
  rig.heal();
  await rig.pass(15 * SECOND);
  expect([session.transport, host.state]).toEqual(['rdma', 'RDMA']);
  const into = Buffer.alloc(data.length);
  await rig.until(session.submit(readIo(0, into)));
  expect(into.equals(data)).toBe(true);
  expect(host.counters).toMatchObject({ failovers: 1, probes: 1, failedProbes: 0, moves: 1, failedMoves: 0 });
});

test('a path that does not heal is probed less and less often', async () => {
  const rig = await Rig.create();
  const host = rig.host();
  const { session } = await rig.until(host.open());
  rig.cut();
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  await rig.pass(300 * SECOND);
  expect(session.transport).toBe('tcp');
  // 10, 20, 40, 80, ... seconds, with jitter.
  expect(host.counters.failedProbes).toBeGreaterThanOrEqual(3);
  expect(host.counters.failedProbes).toBeLessThanOrEqual(5);
  await rig.until(session.submit(readIo(0, Buffer.alloc(4096))));
});

test.each(['close', 'drain'] as const)(
  '%s waits for a probe that is being connected, and leaves nothing of it',
  async (end) => {
    const rig = await Rig.create();
    let dials = 0;
    let letThrough = () => {};
    const rdma = async () => {
      if (++dials > 1) {
        await new Promise<void>((resolve) => {
          letThrough = resolve;
        });
      }
      return rig.dialRdma();
    };
    const host = rig.host({ dial: { rdma, tcp: async () => rig.dialTcp() } });
    await rig.until(host.open());
    host.failRdma('a test');
    await rig.pass(15 * SECOND);
    expect([dials, host.state]).toEqual([2, 'PROBE']);
    let closed = false;
    const closing = host[end]().then(() => {
      closed = true;
    });
    await rig.pass(SECOND);
    expect(closed).toBe(false);
    letThrough();
    await rig.until(closing);
    const { qp, pd } = rig.rdma!.clientParts;
    expect([qp.isClosed, pd.isClosed]).toEqual([true, true]);
  },
);

test('a flapping path loses nothing, and is left alone longer each time', async () => {
  const rig = await Rig.create();
  const host = rig.host();
  const { session } = await rig.until(host.open());
  for (let round = 0; round < 4; round++) {
    rig.cut();
    await rig.until(session.submit(writeIo(round * 4096, pattern(4096, round))));
    rig.heal();
    await rig.pass(12 * SECOND * 2 ** round + SECOND);
    expect(host.state).toBe('RDMA');
  }
  const into = Buffer.alloc(4 * 4096);
  await rig.until(session.submit(readIo(0, into)));
  for (let round = 0; round < 4; round++) {
    expect(into.subarray(round * 4096, (round + 1) * 4096).equals(pattern(4096, round))).toBe(true);
  }
  expect(host.counters.failovers).toBe(4);
});

for (const from of ['rdma', 'tcp'] as const) {
  const to = from === 'rdma' ? 'tcp' : 'rdma';
  test(`128 slots in flight survive the loss of ${from}: each write is executed exactly once`, async () => {
    const disk = new CountingDisk(DISK_BYTES);
    const rig = await Rig.create({ disk, delayNs: 50_000, tcpDelayNs: 50_000 });
    // Lost at every stage: requests under way, data under way, executed with the answer under way.
    for (let round = 0; round < 30; round++) {
      const session = await rig.connected(from, { inlineWriteBytesMax: round % 2 === 0 ? 4096 : 0 });
      disk.executed.clear();
      const done = Array.from({ length: 128 }, (_, i) => session.submit(writeIo(i * 8192, pattern(4096, i + round))));
      expect(session.outstanding).toBe(128);
      await rig.pass(20_000 * (round + 1));
      session.breakConnection('a test');
      await rig.until(session.resume(to === 'rdma' ? await rig.dialRdma() : rig.dialTcp()));
      await rig.until(Promise.all(done));
      expect([...disk.executed.values()].every((times) => times === 1)).toBe(true);
      expect(disk.executed.size).toBe(128);
      await rig.until(session.end(new Error('over')));
    }
    expect(rig.server.counters.cachedReplies).toBeGreaterThan(0);
  });
}

test('20 failovers in each direction: every sum is exact', async () => {
  await checkFailovers(20);
});

test('a server that restarted has forgotten the session: what was unanswered is sent again, and numbers start anew', async () => {
  const disk = new CountingDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const session = await rig.connected('rdma');
  for (let i = 0; i < 5; i++) await rig.until(session.submit(writeIo(0, pattern(4096, i))));
  const done = session.submit(writeIo(4096, pattern(4096, 9)));
  const old = rig.server;
  session.breakConnection('the server died');
  await rig.until(old.close());
  rig.boot();
  await rig.until(session.resume(rig.dialTcp()));
  await rig.until(done);
  await rig.until(session.submit(readIo(0, Buffer.alloc(4096))));
  expect(session.counters).toMatchObject({ serverRestarts: 1, resent: 1 });
});

/** A disk of which a test can say that it has lost what it had not synced. */
class MortalDisk extends MemoryDevice {
  override writeVerifier = 1n;
}

/** A host with two sessions to a server that starts anew, with another life of its store if `isLost`. */
async function restarted(isLost: boolean, before: (disks: RemoteDisk[]) => Promise<void>) {
  const disk = new MortalDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const host = rig.host();
  const disks: RemoteDisk[] = [];
  for (let i = 0; i < 2; i++) disks.push(rig.remoteDisk((await rig.until(host.open())).session));
  await rig.until(before(disks));
  const old = rig.server;
  rig.boot();
  if (isLost) disk.writeVerifier++;
  await rig.until(old.close());
  host.failRdma('the server died');
  await rig.pass(SECOND);
  return { rig, disks };
}

test('a store that starts anew: FLUSH says once to everybody that what had not been flushed may be gone', async () => {
  const { rig, disks } = await restarted(true, ([disk]) => disk.write(0, pattern(4096, 1)));
  for (const disk of disks) await expect(rig.until(disk.flush())).rejects.toMatchObject({ errno: 'EIO' });
  await rig.until(disks[0].write(0, pattern(4096, 2)));
  for (const disk of disks) await rig.until(disk.flush());
});

test.each<[string, boolean, (disks: RemoteDisk[]) => Promise<void>]>([
  ['only the process of the server was another', false, ([disk]) => disk.write(0, pattern(4096, 1))],
  ['everything had been flushed', true, ([disk, other]) => disk.write(0, pattern(4096, 1)).then(() => other.flush())],
  ['it had been written with FUA', true, ([disk]) => disk.write(0, pattern(4096, 1), { fua: true })],
  ['nothing had been written', true, ([disk]) => disk.read(0, 4096, Buffer.alloc(4096))],
])('a store that starts anew, but %s: FLUSH succeeds', async (_, isLost, before) => {
  const { rig, disks } = await restarted(isLost, before);
  for (const disk of disks) await rig.until(disk.flush());
});

test('100 connections leave a failing path at once and return by 5 a second', async () => {
  const rig = await Rig.create();
  const host = rig.host();
  const reconnectors = [];
  for (let i = 0; i < 100; i++) reconnectors.push(await rig.until(host.open()));
  expect(host.count('rdma')).toBe(100);
  host.failRdma('a test');
  await rig.pass(SECOND / 10);
  expect(host.count('tcp')).toBe(100);
  while (host.state !== 'RAMP') await rig.pass(SECOND / 10);
  const moved: number[] = [];
  while (host.state === 'RAMP') {
    moved.push(host.count('rdma'));
    await rig.pass(SECOND);
  }
  expect(host.count('rdma')).toBe(100);
  expect(moved.length).toBeGreaterThanOrEqual(19);
  moved.forEach((count, i) => void expect(count).toBeLessThanOrEqual(5 * (i + 2)));
});

test('a failback whose moves fail is aborted and undone', async () => {
  const rig = await Rig.create();
  let refused = false;
  let dialed = 0;
  const host = rig.host({
    dial: {
      rdma: async () => {
        dialed++;
        if (refused && dialed > 1) throw new Error('refused');
        return rig.dialRdma();
      },
      tcp: async () => rig.dialTcp(),
    },
  });
  for (let i = 0; i < 20; i++) await rig.until(host.open());
  host.failRdma('a test');
  await rig.pass(SECOND);
  refused = true;
  dialed = 0; // The probe gets through, what follows does not.
  await rig.pass(20 * SECOND);
  expect(host.counters.abortedTransitions).toBe(1);
  expect([host.state, host.count('rdma')]).toEqual(['HOLD_DOWN', 0]);
});

test('RDMA is taken out of service under running I/O: no error, and nothing of it is left on the device', async () => {
  const rig = await Rig.create();
  const host = rig.host();
  const sessions = [];
  for (let i = 0; i < 4; i++) sessions.push((await rig.until(host.open())).session);
  const keysAtRest = rig.pair.a.host.nic.keys.size;
  let running = true;
  let done = 0;
  const workers = sessions.map(async (session, n) => {
    while (running) {
      await session.submit(writeIo(n * 65_536, pattern(16_384, done)));
      done++;
      await rig.sleep(5e6);
    }
  });
  await rig.pass(SECOND / 100);
  await rig.until(host.drain());
  expect([host.state, host.count('tcp'), host.count('rdma')]).toEqual(['DRAINED', 4, 0]);
  expect(rig.pair.a.host.nic.keys.size).toBeLessThan(keysAtRest);
  expect(rig.pair.a.host.nic.keys.size).toBe(1); // The rig's own region.
  const before = done;
  await rig.pass(SECOND / 10);
  expect(done).toBeGreaterThan(before);
  host.restore();
  await rig.pass(10 * SECOND);
  expect([host.state, host.count('rdma')]).toEqual(['RDMA', 4]);
  running = false;
  await rig.until(Promise.all(workers));
});
