/** sU streams that outlive their connections, in virtual time: over both transports, through their deaths, and what a peer may not do. */

import { expect, test } from 'vitest';
import { encodeResume } from '../../../src/storage-rpc/su-stream/su-stream-frame.js';
import { pattern } from '../sk/rig.js';
import { StreamRig, watch } from './rig.js';
import { dieBehindFrame, survive } from './transition.js';

const SECOND = 1e9;

test.each(['rdma', 'tcp'] as const)('bytes go both ways over %s, and both ends end', async (transport) => {
  const rig = await StreamRig.create({});
  const dial = transport === 'rdma' ? { rdma: () => rig.dialRdma() } : { tcp: () => rig.dialTcp() };
  const host = rig.host({ dial });
  const client = watch(await rig.until(host.stream()));
  const [server] = rig.served;
  expect(client.stream.transport).toBe(transport);
  const data = pattern(300_000, 1);
  await rig.until(Promise.all([client.stream.write(data), server.stream.write(data.subarray(0, 70_000))]));
  await rig.until(Promise.all([client.stream.end(), server.stream.end()]));
  expect(Buffer.concat(server.got).equals(data)).toBe(true);
  expect(Buffer.concat(client.got).equals(data.subarray(0, 70_000))).toBe(true);
  expect([client.hasEnded, server.hasEnded]).toEqual([true, true]);
  await expect(client.stream.write(data)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
  await rig.until(client.stream.close());
  await rig.pass(SECOND);
  expect([client.failure, server.failure]).toEqual([undefined, undefined]);
});

test('connections that die at random moments, on both sides, over both transports: nothing is lost, nothing comes twice', async () => {
  let resent = 0;
  for (let seed = 1; seed <= 6; seed++) resent += (await survive(seed, 1 + (seed % 8))).resent;
  expect(resent).toBeGreaterThan(0);
}, 60_000);

test.each([
  ['rdma', 'client'],
  ['rdma', 'server'],
  ['tcp', 'client'],
  ['tcp', 'server'],
] as const)('a connection over %s that dies behind any of the first frames of the %s', async (transport, side) => {
  const first = transport === 'tcp' && side === 'client' ? 2 : 1; // A first connection that fails by all transports is no stream.
  for (let n = first; n <= 6; n++) expect(await dieBehindFrame(n, transport, side)).toBe(true);
});

test('the negative twin: a side that says it has received what it has not loses bytes, and the stream notices', async () => {
  const rig = await StreamRig.create({});
  const host = rig.host({ stream: { windowBytes: 1 << 20 } });
  const client = watch(await rig.until(host.stream()));
  const [server] = rig.served;
  await rig.until(client.stream.write(pattern(900_000, 1)));
  await rig.pass(200_000);
  const { progress } = server.stream;
  Object.defineProperty(server.stream, 'progress', {
    get: () => ({ ...progress, offset: progress.offset + 1 }),
  });
  rig.newest!.client.fail(new Error('a test'));
  await rig.pass(SECOND / 2);
  expect(Buffer.concat(server.got).length).toBeLessThan(900_000);
  expect(server.failure).toMatchObject({ code: 'ERR_ROCE_MISMATCH', message: expect.stringMatching(/elsewhere/) });
  expect(client.failure).toMatchObject({ code: 'ERR_ROCE_CLOSED', message: expect.stringMatching(/elsewhere/) });
});

test('RDMA that fails under traffic: TCP takes over, and RDMA returns after its hold-down', async () => {
  const rig = await StreamRig.create({});
  const events: string[] = [];
  const host = rig.host({ onEvent: ({ type }) => events.push(type) });
  const client = watch(await rig.until(host.stream()));
  const [server] = rig.served;
  const sent: Buffer[] = [];
  const used = new Set<string>();
  for (let i = 0; i < 400; i++) {
    const piece = pattern(10_000, i);
    sent.push(piece);
    await rig.until(client.stream.write(piece));
    if (i === 20) host.failRdma('a test');
    await rig.pass(1e6);
    used.add(`${client.stream.transport}`);
  }
  await rig.until(client.stream.end());
  expect(Buffer.concat(server.got).equals(Buffer.concat(sent))).toBe(true);
  expect([...used].sort()).toEqual(['rdma', 'tcp']);
  expect(events).toEqual(['failover', 'return']);
  expect(client.stream.transport).toBe('rdma');
  // A NIC is serviced without a gap.
  await rig.until(host.drain());
  expect(client.stream.transport).toBe('tcp');
});

test('a reader that does not read holds its writer up at the window, over as many connections as it takes', async () => {
  const rig = await StreamRig.create({ windowBytes: 256 << 10 });
  const host = rig.host();
  const stream = await rig.until(host.stream());
  const held: Array<() => void> = [];
  const got: Buffer[] = [];
  rig.served[0].stream.onChunk = ({ bytes, release }) => {
    got.push(Buffer.from(bytes));
    held.push(release);
  };
  const data = pattern(2 << 20, 1);
  let isDone = false;
  const written = stream.write(data).then(() => {
    isDone = true;
  });
  for (let i = 0; i < 5; i++) {
    await rig.pass(SECOND);
    rig.newest!.client.fail(new Error('a test'));
  }
  expect([isDone, Buffer.concat(got).length]).toEqual([false, 256 << 10]);
  for (let i = 0; !isDone && i < 1000; i++) {
    for (const release of held.splice(0)) release();
    await rig.pass(1e6);
  }
  await written;
  await rig.pass(SECOND);
  expect(Buffer.concat(got).equals(data)).toBe(true);
});

test('a server that was started anew has forgotten the stream: both the program and its writes hear of it', async () => {
  const rig = await StreamRig.create({});
  const client = watch(await rig.until(rig.host().stream()));
  await rig.until(client.stream.write(pattern(10_000, 1)));
  const ending = client.stream.end();
  ending.catch(() => {});
  rig.boot();
  rig.newest!.client.fail(new Error('the server was killed'));
  await rig.pass(SECOND);
  expect(client.failure).toMatchObject({ code: 'ERR_ROCE_CLOSED', message: expect.stringMatching(/forgotten/) });
  await expect(client.stream.write(Buffer.alloc(1))).rejects.toBeInstanceOf(Error);
});

test('a client that does not come back ends its stream at the server after its time', async () => {
  const rig = await StreamRig.create({ keepNs: 5 * SECOND });
  const client = watch(await rig.until(rig.host().stream()));
  const [server] = rig.served;
  for (const transport of ['rdma', 'tcp'] as const) rig.down.add(transport);
  rig.newest!.server.fail(new Error('cut off'));
  rig.newest!.client.fail(new Error('cut off'));
  await rig.pass(4 * SECOND);
  expect([rig.acceptor.streams, server.failure]).toEqual([1, undefined]);
  await rig.pass(2 * SECOND);
  expect([rig.acceptor.streams, `${server.failure}`]).toEqual([0, expect.stringMatching(/was away for 5 s/)]);
  rig.down.clear();
  await rig.pass(5 * SECOND);
  expect(client.failure).toMatchObject({ code: 'ERR_ROCE_CLOSED' });
});

test('a stream that is closed early is over for the peer, too; a peer that vanishes without a word is noticed', async () => {
  const rig = await StreamRig.create({});
  const host = rig.host({ dial: { tcp: () => rig.dialTcp() } });
  const first = watch(await rig.until(host.stream()));
  await rig.until(first.stream.close());
  await rig.pass(SECOND);
  expect(rig.served[0].failure).toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  const second = watch(await rig.until(host.stream()));
  const { connections } = second.stream.counters;
  rig.newest!.server.onFrame = () => {}; // It is deaf, and its TCP is not.
  await rig.pass(6 * SECOND);
  expect(second.stream.counters.connections).toBeGreaterThan(connections);
});

/** A connection to the acceptor without a client behind it. */
async function raw(rig: StreamRig) {
  const link = await rig.dialTcp();
  const frames: string[] = [];
  let isOver = false;
  link.onFrame = ({ type }) => frames.push(type);
  link.onFailure = () => {
    isOver = true;
  };
  return { link, frames, isOver: () => isOver };
}

test('what a peer may not do ends its connection, and nothing else', async () => {
  const rig = await StreamRig.create({ windowBytes: 64 << 10 });
  const honest = watch(await rig.until(rig.host({ dial: { tcp: () => rig.dialTcp() } }).stream()));
  const resume = (id: number, epoch = 1, mayBegin = true) =>
    encodeResume({ id: Buffer.alloc(16, id), epoch, windowBytes: 65_536, mayBegin });
  const zero = { offset: 0, consumed: 0 };
  const deeds: Array<[string, (link: Awaited<ReturnType<typeof raw>>['link']) => void]> = [
    ['a frame before RESUME', (link) => void link.send({ type: 'DATA', ...zero }, Buffer.alloc(10))],
    ['a RESUME of another length', (link) => void link.send({ type: 'RESUME', ...zero }, Buffer.alloc(10))],
    [
      'data from elsewhere',
      (link) => {
        void link.send({ type: 'RESUME', ...zero }, resume(1));
        void link.send({ type: 'DATA', offset: 5, consumed: 0 }, Buffer.alloc(10));
      },
    ],
    [
      'more than it was sent was consumed',
      (link) => {
        void link.send({ type: 'RESUME', ...zero }, resume(2));
        void link.send({ type: 'ACK', offset: 0, consumed: 1 });
      },
    ],
    [
      'an end elsewhere',
      (link) => {
        void link.send({ type: 'RESUME', ...zero }, resume(3));
        void link.send({ type: 'END', offset: 1, consumed: 0 });
      },
    ],
    ['a stream that nobody has begun', (link) => void link.send({ type: 'RESUME', ...zero }, resume(4, 7, false))],
    [
      'bytes received that were never sent',
      (link) => void link.send({ type: 'RESUME', offset: 0, consumed: 9 }, resume(5)),
    ],
  ];
  for (const [name, deed] of deeds) {
    const { link, isOver } = await raw(rig);
    deed(link);
    await rig.pass(SECOND / 10);
    expect(isOver(), name).toBe(true);
  }
  // Silence is not for ever.
  const silent = await raw(rig);
  await rig.pass(11 * SECOND);
  expect(silent.isOver()).toBe(true);
  await rig.until(honest.stream.write(pattern(1000, 1)));
  await rig.pass(SECOND);
  expect(Buffer.concat(rig.served[0].got).equals(pattern(1000, 1))).toBe(true);
});

test('more than the window is refused, not kept', async () => {
  const rig = await StreamRig.create({ windowBytes: 64 << 10 });
  const { link, isOver } = await raw(rig);
  const body = encodeResume({ id: Buffer.alloc(16, 1), epoch: 1, windowBytes: 65_536, mayBegin: true });
  void link.send({ type: 'RESUME', offset: 0, consumed: 0 }, body);
  await rig.pass(SECOND / 100);
  rig.served[0].stream.onChunk = () => {};
  void link.send({ type: 'DATA', offset: 0, consumed: 0 }, Buffer.alloc(60_000));
  await rig.pass(SECOND / 100);
  expect(isOver()).toBe(false);
  void link.send({ type: 'DATA', offset: 60_000, consumed: 0 }, Buffer.alloc(60_000));
  await rig.pass(SECOND / 100);
  expect(isOver()).toBe(true);
});
