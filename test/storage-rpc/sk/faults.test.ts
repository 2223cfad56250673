/** Data that is wrong though every packet was right, packets of a connection that is no more, clients that die. */

import { expect, test } from 'vitest';
import { EventQueue } from '../../../packages/lab/src/sim/event-queue.js';
import type { SimHost } from '../../../packages/lab/src/sim/sim-host.js';
import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import { FairQueue } from '../../../src/core/fair-queue.js';
import type { RxDatagram } from '../../../src/port/datagram.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NO_REMOTE_BUFFER } from '../../../src/storage-rpc/link/remote-buffer-descriptor.js';
import { SK_RECEIVES } from '../../../src/storage-rpc/sk/rdma-parts.js';
import { writeRequest } from '../../../src/storage-rpc/sk/request.js';
import { TcpServerChannel } from '../../../src/storage-rpc/sk/tcp-channels.js';
import type { ByteStream } from '../../../src/storage-rpc/stream/byte-stream.js';
import { Access } from '../../../src/verbs/access.js';
import { repetitions } from '../../support/repetitions.js';
import { checkBadData } from './bad-data.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from './rig.js';

const BAD = repetitions(50, 500);
const OLD_PACKETS = repetitions(10_000, 100_000);
const KILLED = repetitions(18, 100);

test(`${BAD} writes and ${BAD} reads whose data is changed behind the ICRC: every one is caught, and right the second time`, () =>
  checkBadData(BAD));

test('a path that changes data again and again is given up', async () => {
  const rig = await Rig.create();
  const host = rig.host({ session: { inlineWriteBytesMax: 0 } });
  const { session } = await rig.until(host.open());
  const { server } = rig.rdma!;
  const pull = server.pull.bind(server);
  server.pull = async (request, into, from, length) => {
    await pull(request, into, from, length);
    into.bytes[0] ^= 1;
  };
  const data = pattern(8192, 1);
  await rig.until(session.submit(writeIo(0, data)));
  expect([session.transport, host.state]).toEqual(['tcp', 'HOLD_DOWN']);
  const stored = Buffer.alloc(8192);
  await rig.disk.read(0, 8192, stored);
  expect(stored.equals(data)).toBe(true);
});

test('a large write is looked at part by part: wherever it is wrong, it is asked for again and nothing wrong is stored', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  const { server } = rig.rdma!;
  const pull = server.pull.bind(server);
  const ranges: string[] = [];
  let badByte = -1;
  server.pull = async (request, into, from, length) => {
    ranges.push(`${from}+${length}`);
    await pull(request, into, from, length);
    if (badByte < from || badByte >= from + length) return;
    into.bytes[badByte] ^= 1;
    badByte = -1;
  };
  const bytes = 600_000;
  const stored = Buffer.alloc(bytes);
  for (const [round, at] of [0, 131_071, 131_072, 599_999].entries()) {
    badByte = at;
    await rig.until(session.submit(writeIo(0, pattern(bytes, round))));
    await rig.disk.read(0, bytes, stored);
    expect(stored.equals(pattern(bytes, round))).toBe(true);
    expect(rig.server.counters.crcMismatches).toBe(round + 1);
  }
  expect(ranges.slice(0, 2)).toEqual(['0+131072', '131072+131072']);
  expect(ranges[4]).toBe('524288+75712');
});

test('memory of a read on its way to a client that is gone is not used again before its queue pair is', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma');
  await rig.until(session.submit(writeIo(0, pattern(1 << 20, 1))));
  const { server } = rig.rdma!;
  const { qp } = rig.rdma!.serverParts;
  let isQpGone = false;
  const closeQp = qp.close.bind(qp);
  qp.close = async () => {
    await closeQp();
    isQpGone = true;
  };
  const move = server.move.bind(server);
  const released: boolean[] = [];
  server.move = (request, data) => {
    const release = data.release.bind(data);
    data.release = () => {
      released.push(isQpGone);
      release();
    };
    move(request, data);
    server.fail(new Error('the peer is gone')); // Between the data and its answer.
  };
  session.submit(readIo(0, Buffer.alloc(1 << 20))).catch(() => {});
  await rig.pass(10e6);
  expect(released).toEqual([true]);
  expect(rig.pool.inUse).toBe(0);
});

/** Keeps a copy of every datagram a host is given. */
function record(host: SimHost): RxDatagram[] {
  const kept: RxDatagram[] = [];
  const receive = host.receive.bind(host);
  host.receive = (datagram) => {
    kept.push({ ...datagram, bytes: datagram.bytes.slice() });
    receive(datagram);
  };
  return kept;
}

test(`${OLD_PACKETS} old packets change nothing in the next incarnation of a connection, on either side`, async () => {
  const rig = await Rig.create();
  const { a, b } = rig.pair;
  const session = await rig.connected('rdma', { inlineWriteBytesMax: 0 });
  const old = [record(a.host), record(b.host)];
  for (let i = 0; i < 20; i++) {
    await rig.until(session.submit(writeIo(i * 65_536, pattern(65_536, i))));
    await rig.until(session.submit(readIo(i * 65_536, Buffer.alloc(65_536))));
  }
  const replayed = old.map((datagrams) => datagrams.slice());
  session.breakConnection('a test');
  await rig.until(session.resume(await rig.dialRdma()));
  for (let i = 0; i < 20; i++) await rig.until(session.submit(writeIo(i * 65_536, pattern(65_536, i + 100))));
  const before = Buffer.alloc(DISK_BYTES);
  await rig.disk.read(0, DISK_BYTES, before);
  const into = Buffer.alloc(65_536);
  const underWay = session.submit(readIo(0, into));
  for (let n = 0; n < OLD_PACKETS / 2; n++) {
    for (const [side, { host }] of [a, b].entries()) {
      const { bytes, ...rest } = replayed[side][n % replayed[side].length];
      host.receive({ ...rest, bytes: bytes.slice() });
    }
  }
  await rig.until(underWay);
  expect(into.equals(pattern(65_536, 100))).toBe(true);
  const after = Buffer.alloc(DISK_BYTES);
  await rig.disk.read(0, DISK_BYTES, after);
  expect(after.equals(before)).toBe(true);
  expect(session.counters.crcMismatches).toBe(0);
});

test(`clients killed with 64 requests under way leave nothing behind, ${KILLED} times, and what was acknowledged is on the disk`, async () => {
  const rig = await Rig.create();
  for (let round = 0; round < KILLED; round++) {
    const session = await rig.connected(round % 3 === 0 ? 'tcp' : 'rdma', { inlineWriteBytesMax: 0 });
    const acknowledged: number[] = [];
    for (let i = 0; i < 64; i++) {
      const isWrite = i % 2 === 1;
      const io = isWrite ? writeIo(i * 16_384, pattern(16_384, i + round)) : readIo(i * 16_384, Buffer.alloc(16_384));
      session.submit(io).then(
        () => isWrite && acknowledged.push(i),
        () => {},
      );
    }
    await rig.pass((round * 7919) % 300_000);
    const { server } = rig;
    await rig.until(session.end(new Error('killed')));
    // The TCP connection beside the queue pair is how a server learns of a death; here the silence does.
    if (round % 3 !== 0) rig.rdma!.server.fail(new Error('the peer is gone'));
    await rig.pass(1e6);
    expect([server.connections, rig.pool.inUse, rig.pulls.taken]).toEqual([0, 0, 0]);
    const stored = Buffer.alloc(16_384);
    for (const i of acknowledged) {
      await rig.disk.read(i * 16_384, stored.length, stored);
      expect(stored.equals(pattern(16_384, i + round))).toBe(true);
    }
  }
  expect(rig.server.sessions).toBeLessThanOrEqual(KILLED);
  expect(rig.pair.b.host.nic.keys.size).toBeLessThan(12);
});

test('a session whose request is still being executed makes no room: it would be executed again, later than what follows it', async () => {
  let finish = () => {};
  class SlowDisk extends MemoryDevice {
    override async write(offset: number, data: Uint8Array): Promise<void> {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      await super.write(offset, data);
    }
  }
  const rig = await Rig.create({ disk: new SlowDisk(DISK_BYTES), server: { sessionsMax: 1 } });
  const first = await rig.connected('tcp');
  first.submit(writeIo(0, pattern(4096, 1))).catch(() => {});
  await rig.pass(1e6);
  await rig.until(first.end(new Error('killed')));
  await rig.pass(1e6);
  expect([rig.server.connections, rig.server.sessions]).toEqual([0, 1]);
  await expect(rig.until(rig.session().resume(rig.dialTcp()))).rejects.toThrow('NO_SESSION');
  finish();
  await rig.pass(1e6);
  await rig.connected('tcp');
  expect(rig.server.sessions).toBe(1);
});

/** A client over TCP that asks for replies with this much data, and reads none. */
function silentClient(dataBytes: number) {
  const unsent: Array<() => void> = [];
  let failure: unknown;
  let isPaused = false;
  const stream: ByteStream = {
    onData: () => {},
    onClose: () => {},
    write: (_, onSent) => void unsent.push(onSent!),
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
    },
    destroy: () => {},
  };
  const clock = virtualClock(new EventQueue());
  const memory = new FairQueue({ clock, bytesMax: Number.POSITIVE_INFINITY });
  const channel = new TcpServerChannel(stream, { memory, clock });
  channel.onFailure = (error) => {
    failure = error;
  };
  const bytes = new Uint8Array(dataBytes);
  channel.onRequest = ({ request, release }) => {
    release();
    const { slot, slotSeq } = request;
    const response = {
      status: 'OK',
      flags: 0,
      slot,
      slotSeq,
      dataCrc: 0,
      moved: bytes.length,
      serverTimeUs: 0,
    } as const;
    void channel.reply(request, response, new Uint8Array(dataBytes / 1024), { bytes, release: () => {} });
  };
  let slotSeq = 0;
  const ask = () => {
    const request = Buffer.alloc(64);
    const [slot, disk, offset] = [0, 0, 0];
    slotSeq++;
    const header = { op: 'READ', flags: 0, sessionLow: 0n, slot, slotSeq, disk, offset, length: bytes.length } as const;
    writeRequest(request, header, NO_REMOTE_BUFFER, 0);
    stream.onData(request);
  };
  return {
    unsent,
    askUntilPaused: () => {
      for (let i = 0; !isPaused && failure === undefined && i < 1000; i++) ask();
    },
    get isPaused() {
      return isPaused;
    },
    get failure() {
      return failure;
    },
  };
}

test('a client over TCP that asks and does not read is not read from: 16 MiB and one more answer are what it can have waiting', () => {
  const client = silentClient(1 << 20);
  client.askUntilPaused();
  expect(client.unsent).toHaveLength(16);
  client.unsent.shift()!();
  expect(client.isPaused).toBe(false);
  client.askUntilPaused();
  expect(client.unsent).toHaveLength(16);
  expect(client.failure).toBeUndefined();
});

test('one that has more small answers waiting than a client can ask for is disconnected', () => {
  const client = silentClient(0);
  client.askUntilPaused();
  expect(client.unsent).toHaveLength(2 * SK_RECEIVES);
  expect(client.failure).toMatchObject({ code: 'ERR_ROCE_LIMIT' });
});

test('a client that is silent for a minute loses its connection, and keeps its session', async () => {
  const rig = await Rig.create();
  const session = await rig.connected('rdma', { idleNs: 1e15 });
  await rig.until(session.submit(writeIo(0, pattern(4096, 1))));
  await rig.pass(100e9);
  expect([rig.server.connections, rig.server.sessions]).toEqual([0, 1]);
  await rig.until(session.resume(rig.dialTcp()));
  expect(session.server?.resumed).toBe(true);
});

test('reads outstanding at a server are bounded in bytes: pulls wait their turn', async () => {
  const rig = await Rig.create({ pullBytesMax: 128 * 1024, delayNs: 1e6 });
  const session = await rig.connected('rdma');
  let peak = 0;
  const take = rig.pulls.take.bind(rig.pulls);
  rig.pulls.take = async (bytes) => {
    await take(bytes);
    peak = Math.max(peak, rig.pulls.taken);
  };
  await rig.until(
    Promise.all(Array.from({ length: 32 }, (_, i) => session.submit(writeIo(i * 65_536, pattern(65_536, i))))),
  );
  expect(peak).toBe(128 * 1024);
});

test('garbage over RDMA costs its sender the connection, and nobody else', async () => {
  const rig = await Rig.create();
  const healthy = await rig.connected('rdma');
  for (let round = 0; round < 30; round++) {
    const session = await rig.connected('rdma');
    const { qp, pd } = rig.rdma!.clientParts;
    const garbage = await pd.regMr(pattern(round * 100, round), Access.LOCAL_WRITE);
    qp.postSend({ opcode: 'SEND', sges: [garbage.sge()], wrId: 0xffff });
    await rig.pass(1e6);
    expect(rig.server.connections).toBe(1);
    await rig.until(session.end(new Error('over')));
  }
  await rig.until(healthy.submit(readIo(0, Buffer.alloc(4096))));
  await rig.pass(1e6); // The answer's acknowledgement is still under way.
  expect([healthy.counters.resumed, rig.pool.inUse]).toEqual([1, 0]);
});
