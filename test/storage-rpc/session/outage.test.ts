/** A server that is away, for a moment or for long: requests wait, are done once, and only a client that was told to gives up, until it is back. */

import { expect, test } from 'vitest';
import type { HostEvent } from '../../../src/storage-rpc/session/host-event.js';
import type { SkClientChannel } from '../../../src/storage-rpc/sk/channel.js';
import { TcpClientChannel, TcpServerChannel } from '../../../src/storage-rpc/sk/tcp-channels.js';
import { createPipe, type PipeEnd } from '../sk/pipe.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../sk/rig.js';
import { CountingDisk } from './check-failovers.js';

const SECOND = 1e9;

/** A host over TCP whose server can be away. `away`: connections are refused, and those there are fail. */
async function hostWith(options: { giveUpNs?: number } = {}) {
  const disk = new CountingDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const says: string[] = [];
  const events: HostEvent[] = [];
  let isAway = false;
  const host = rig.host({
    dial: {
      tcp: async (): Promise<SkClientChannel> => {
        if (isAway) throw new Error('ECONNREFUSED');
        return rig.dialTcp();
      },
    },
    onNotice: (notice) => says.push(notice),
    onEvent: (event) => events.push(event),
    ...options,
  });
  const reconnectors = [await rig.until(host.open()), await rig.until(host.open())];
  const away = (value: boolean) => {
    isAway = value;
    if (value) for (const { session } of reconnectors) session.breakConnection('the host is away');
  };
  return { rig, host, disk, reconnectors, says, events, away };
}

test.each([2, 120, 600])(
  'away for %i s: every request is answered afterwards, each done once, and two lines are said',
  async (seconds) => {
    const { rig, host, disk, reconnectors, says, away } = await hostWith();
    away(true);
    const writes = Array.from({ length: 300 }, (_, i) =>
      reconnectors[i % 2].session.submit(writeIo(i * 4096, pattern(4096, i))),
    );
    await rig.pass(seconds * SECOND);
    expect(host.outage).toMatchObject({ reason: 'ECONNREFUSED', isWrongDisk: false });
    away(false);
    await rig.until(Promise.all(writes));
    expect(disk.executed.size).toBe(300);
    expect([...disk.executed.values()].every((times) => times === 1)).toBe(true);
    expect([host.outage, host.outages]).toEqual([undefined, 1]);
    expect(says).toEqual([
      'the storage server cannot be reached: ECONNREFUSED; requests wait for it',
      expect.stringMatching(/^the storage server is back after /),
    ]);
  },
);

test('a server that stands still for 120 s, and then finds all connections that were tried meanwhile, does each write once', async () => {
  const disk = new CountingDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const waiting: PipeEnd[] = [];
  let isStopped = false;
  const says: string[] = [];
  const host = rig.host({
    dial: {
      tcp: async () => {
        if (!isStopped) return rig.dialTcp();
        // Its system accepts the connection, and keeps what is sent.
        const [client, server] = createPipe(rig.pair.events, 10_000);
        waiting.push(server);
        return new TcpClientChannel(client);
      },
    },
    onNotice: (notice) => says.push(notice),
  });
  const { session } = await rig.until(host.open());
  isStopped = true;
  session.breakConnection('the server is silent');
  const writes = Array.from({ length: 200 }, (_, i) => session.submit(writeIo(i * 4096, pattern(4096, i))));
  await rig.pass(120 * SECOND);
  expect(waiting.length).toBeGreaterThan(10);
  isStopped = false;
  for (const end of waiting) rig.server.accept(new TcpServerChannel(end, rig));
  await rig.until(Promise.all(writes));
  expect([...disk.executed.values()]).toEqual(Array(200).fill(1));
  expect(says).toEqual([
    expect.stringMatching(/cannot be reached: .*no answer; requests wait for it/),
    expect.stringMatching(/is back after 1[12]\d s/),
  ]);
});

test('a connection that breaks and is there again is no outage', async () => {
  const { rig, host, reconnectors, says } = await hostWith();
  reconnectors[0].session.breakConnection('a moment');
  await rig.until(reconnectors[0].session.submit(writeIo(0, pattern(4096, 1))));
  expect([host.outages, says]).toEqual([0, []]);
});

test('more requests than may wait are refused with ENOMEM, not kept', async () => {
  const { rig, reconnectors, away } = await hostWith();
  away(true);
  const [{ session }] = reconnectors;
  const outcomes: string[] = [];
  for (let i = 0; i < 5000; i++) {
    session.submit(readIo(0, Buffer.alloc(512))).then(
      () => outcomes.push('done'),
      (error: { errno: string }) => outcomes.push(error.errno),
    );
  }
  await rig.pass(SECOND);
  expect(outcomes.every((outcome) => outcome === 'ENOMEM')).toBe(true);
  const refused = outcomes.length;
  expect(refused).toBe(5000 - 4096);
  away(false);
  await rig.pass(10 * SECOND);
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(4096);
});

test('a client that gives up fails what waits and what comes, says so, and goes on when the server is back', async () => {
  const { rig, host, reconnectors, says, events, away } = await hostWith({ giveUpNs: 60 * SECOND });
  away(true);
  const waiting = reconnectors.map(({ session }) => session.submit(writeIo(0, pattern(4096, 1))));
  for (const write of waiting) write.catch(() => {});
  await rig.pass(55 * SECOND);
  expect(says).toHaveLength(1);
  await rig.pass(10 * SECOND);
  for (const write of waiting) await expect(write).rejects.toMatchObject({ errno: 'EIO' });
  await expect(rig.until(reconnectors[0].session.submit(readIo(0, Buffer.alloc(512))))).rejects.toMatchObject({
    errno: 'EIO',
  });
  expect(says.slice(1)).toEqual([expect.stringMatching(/^no storage server for 6\d s: requests fail/)]);
  away(false);
  await rig.pass(5 * SECOND);
  for (const { session } of reconnectors) await rig.until(session.submit(writeIo(8192, pattern(4096, 3))));
  expect([host.outage, says.length]).toEqual([undefined, 3]);
  expect(events).toEqual([
    { type: 'outage', reason: 'ECONNREFUSED', isWrongDisk: false, giveUpNs: 60 * SECOND },
    { type: 'give-up', outageNs: expect.any(Number) },
    { type: 'back', outageNs: expect.any(Number) },
  ]);
});

test('a program hears that RDMA has failed, and that it is in use again', async () => {
  const rig = await Rig.create({});
  const events: HostEvent[] = [];
  const host = rig.host({ path: { holdDownNs: 2 * SECOND }, onEvent: (event) => events.push(event) });
  const { session } = await rig.until(host.open());
  host.failRdma('a test');
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  expect(events).toEqual([{ type: 'failover', reason: expect.stringContaining('a test') }]);
  await rig.pass(10 * SECOND);
  expect([events.slice(1), host.state]).toEqual([[{ type: 'return' }], 'RDMA']);
});

test('a write that failed because the client gave up never follows one that came after it', async () => {
  // The server has the write and executes it slowly, while the client gives up, returns, and writes something else there.
  class SlowDisk extends CountingDisk {
    release = () => {};
    override async write(offset: number, data: Uint8Array): Promise<void> {
      if (data[0] === 1) {
        await new Promise<void>((resolve) => {
          this.release = resolve;
        });
      }
      await super.write(offset, data);
    }
  }
  const disk = new SlowDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  let isAway = false;
  const host = rig.host({
    dial: {
      tcp: async () => {
        if (isAway) throw new Error('ECONNREFUSED');
        return rig.dialTcp();
      },
    },
    giveUpNs: 10 * SECOND,
  });
  const { session } = await rig.until(host.open());
  const first = session.submit(writeIo(0, Buffer.alloc(4096, 1)));
  const failed = expect(first).rejects.toMatchObject({ errno: 'EIO' });
  await rig.pass(SECOND / 100);
  isAway = true;
  session.breakConnection('a test');
  await rig.pass(15 * SECOND);
  await failed;
  isAway = false;
  await rig.pass(5 * SECOND);
  let isDone = false;
  const second = session.submit(writeIo(0, Buffer.alloc(4096, 2))).then(() => {
    isDone = true;
  });
  await rig.pass(SECOND);
  expect(isDone).toBe(false); // The first one is still being executed.
  disk.release();
  await rig.until(second);
  const into = Buffer.alloc(4096);
  await rig.until(session.submit(readIo(0, into)));
  expect(into[0]).toBe(2);
});

test('a disk that is closed during an outage does not wait for its end', async () => {
  const { rig, host, reconnectors, away } = await hostWith();
  const { session } = reconnectors[0];
  const disk = rig.remoteDisk(session);
  away(true);
  const read = disk.read(0, 512, Buffer.alloc(512));
  const failed = expect(read).rejects.toMatchObject({ errno: 'EIO' });
  await rig.pass(100 * SECOND);
  const startNs = rig.clock.nowNs();
  host.shortenDeadline();
  await rig.until(disk.close());
  await failed;
  expect(rig.clock.nowNs() - startNs).toBeLessThan(10 * SECOND);
  await rig.until(host.close());
});
