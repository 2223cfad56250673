import { describe, expect, it } from 'vitest';
import { ConnectionManager } from '../../src/cm/connection-manager.js';
import { ConnectionRejected } from '../../src/cm/connection-rejected.js';
import type { MessageName } from '../../src/cm/messages.js';
import { codeToNs } from '../../src/cm/timing.js';
import { SeededRandom } from '../../src/core/random.js';
import { IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { UD_SEND_ONLY } from '../../src/packet/opcode.js';
import { emitRoce, ICRC_BYTES } from '../../src/packet/roce.js';
import { type Fate, TwoManagers } from './two-managers.js';

const TIMEWAIT_NS = codeToNs(17);
const RESEND_NS = 2 * codeToNs(16) + codeToNs(20);

async function failure(promise: Promise<unknown>): Promise<ConnectionRejected> {
  return promise.then(
    () => {
      throw new Error('it should have failed');
    },
    (error: unknown) => error as ConnectionRejected,
  );
}

describe.each([
  ['IPv4', ['192.0.2.1', '192.0.2.2']],
  ['IPv6', ['2001:db8::1', '2001:db8::2']],
] as const)('over %s', (_, addresses) => {
  it('two QPs are connected, move data both ways, and are disconnected', async () => {
    const world = await TwoManagers.create({ addresses });
    const { active, passive } = await world.connectOne();
    expect(world.log).toEqual(['a REQ', 'b REP', 'a RTU']);
    const a = { side: world.a, qp: active.qp };
    const b = { side: world.b, qp: passive.qp };
    await world.exchange(a, b);
    await world.exchange(b, a);
    await world.until(active.disconnect());
    await world.until(passive.disconnected);
    expect(world.log.slice(3)).toEqual(['a DREQ', 'b DREP']);
    expect([active.qp.state, passive.qp.state]).toEqual(['ERR', 'ERR']);
  });
});

it('the QPs get what was negotiated', async () => {
  const world = await TwoManagers.create();
  const listener = world.b.cm.listen(7174);
  const qp = await world.a.newQp();
  const connecting = world.a.cm.connect(world.b.address, 7174, qp, {
    pathMtu: 512,
    retryCount: 3,
    rnrRetryCount: 5,
    responderResources: 2,
    initiatorDepth: 9,
    privateData: Uint8Array.of(1, 2, 3),
  });
  const request = await world.until(listener.next());
  expect(request).toMatchObject({ pathMtu: 512, responderResources: 2, initiatorDepth: 9 });
  expect([...request.privateData.subarray(0, 4)]).toEqual([1, 2, 3, 0]);
  const peerQp = await world.b.newQp();
  const accepting = request.accept(peerQp, {
    responderResources: 4,
    initiatorDepth: 100,
    rnrRetryCount: 6,
    privateData: Uint8Array.of(9),
  });
  const [active, passive] = await world.until(Promise.all([connecting, accepting]));
  expect([active.privateData[0], active.maxRdAtomic, passive.maxRdAtomic]).toEqual([9, 4, 2]);
  expect(await world.until(qp.query())).toMatchObject({
    state: 'RTS', pathMtu: 512, destQpn: peerQp.qpn, retryCnt: 3, rnrRetry: 6, maxRdAtomic: 4, maxDestRdAtomic: 2, timeout: 17,
  }); // biome-ignore format: one thing
  expect(await world.until(peerQp.query())).toMatchObject({
    state: 'RTS', pathMtu: 512, destQpn: qp.qpn, retryCnt: 3, rnrRetry: 5, maxRdAtomic: 2, maxDestRdAtomic: 4, timeout: 17,
  }); // biome-ignore format: one thing
  const [mine, theirs] = [await qp.query(), await peerQp.query()];
  expect([mine.sqPsn, mine.rqPsn]).toEqual([theirs.rqPsn, theirs.sqPsn]);
});

it('the passive side answers with the DSCP that the request names', async () => {
  const world = await TwoManagers.create({ dscpOfA: 34 });
  const { active, passive } = await world.connectOne();
  world.dscps.b.clear(); // datagrams of QP1
  const [a, b] = [
    { side: world.a, qp: active.qp },
    { side: world.b, qp: passive.qp },
  ];
  await world.exchange(a, b);
  await world.exchange(b, a);
  expect([[...world.dscps.a], [...world.dscps.b]]).toEqual([[34], [34]]);
  await expect(ConnectionManager.open(world.a.device, { dscp: 64 })).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
  });
});

it('connects a hundred times in sequence', async () => {
  const world = await TwoManagers.create();
  for (let i = 0; i < 100; i++) {
    const { active, passive } = await world.connectOne();
    await world.until(Promise.all([i % 2 === 0 ? active.disconnect() : passive.disconnect(), active.disconnected]));
    await world.until(passive.disconnected);
    await world.until(Promise.all([active.qp.close(), passive.qp.close()]));
  }
  expect(world.a.cm.counters()).toMatchObject({ retries: 0, duplicates: 0, unmatched: 0, malformed: 0 });
});

it('connects sixteen at once, over a link that loses a fifth of the datagrams', async () => {
  const world = await TwoManagers.create();
  const random = new SeededRandom(3).stream('losses');
  world.fates = () => (random.u32() < 2 ** 32 / 5 ? 'lose' : undefined);
  const listener = world.b.cm.listen(7174);
  const accepting = world.acceptAll(listener, 16);
  const connecting = Array.from({ length: 16 }, async () =>
    world.a.cm.connect(world.b.address, 7174, await world.a.newQp()),
  );
  const [active, passive] = await world.until(Promise.all([Promise.all(connecting), accepting]));
  const peers = new Set(await Promise.all(active.map(async ({ qp }) => (await qp.query()).destQpn)));
  expect(peers).toEqual(new Set(passive.map(({ qp }) => qp.qpn)));
  expect(world.a.cm.counters().retries + world.b.cm.counters().retries).toBeGreaterThan(0);
  await world.until(Promise.all(active.map((connection) => connection.disconnect())));
  await world.until(Promise.all(passive.map((connection) => connection.disconnected)));
});

describe('one datagram', () => {
  const fates: Array<['a' | 'b', MessageName, Fate]> = (['lose', 'double', 'corrupt'] as const).flatMap((fate) =>
    (
      [
        ['a', 'REQ'],
        ['b', 'REP'],
        ['a', 'RTU'],
        ['a', 'DREQ'],
        ['b', 'DREP'],
      ] as const
    ).map(([from, name]): ['a' | 'b', MessageName, Fate] => [from, name, fate]),
  );

  it.each(fates)('from %s, the %s: %s', async (from, name, fate) => {
    const world = await TwoManagers.create();
    world.fates = (sender, message, nth) => (sender === from && message === name && nth === 1 ? fate : undefined);
    const { active, passive } = await world.connectOne();
    await world.exchange({ side: world.a, qp: active.qp }, { side: world.b, qp: passive.qp });
    await world.until(active.disconnect());
    await world.until(passive.disconnected);
    const retries = world.a.cm.counters().retries + world.b.cm.counters().retries;
    expect(retries).toBe(fate === 'double' ? 0 : 1);
    expect(world.a.device.counters().rx_icrc_errors + world.b.device.counters().rx_icrc_errors).toBe(
      fate === 'corrupt' ? 1 : 0,
    );
    await world.pass(2 * TIMEWAIT_NS);
    const connectedNs = fate === 'double' ? 0 : RESEND_NS;
    expect(world.events.nowNs).toBeGreaterThan(connectedNs);
  });
});

it('a lost RTU is made up for by the first packet of data', async () => {
  const world = await TwoManagers.create();
  world.fates = (_, name) => (name === 'RTU' ? 'lose' : undefined);
  const listener = world.b.cm.listen(7174);
  const qp = await world.a.newQp();
  const accepting = world.acceptAll(listener, 1);
  const active = await world.until(world.a.cm.connect(world.b.address, 7174, qp));
  active.qp.postSend({ opcode: 'RDMA_WRITE', sges: [], remoteAddr: world.b.mr.addr, rkey: world.b.mr.rkey });
  const [passive] = await world.until(accepting);
  expect(passive.qp.state).toBe('RTS');
  expect(world.events.nowNs).toBeLessThan(1e6);
});

describe('a connection that is not wanted', () => {
  it('is rejected by the program, with its reasons', async () => {
    const world = await TwoManagers.create();
    const listener = world.b.cm.listen(7174);
    const qp = await world.a.newQp();
    const connecting = failure(world.a.cm.connect(world.b.address, 7174, qp));
    (await world.until(listener.next())).reject(Uint8Array.of(7, 8));
    const error = await world.until(connecting);
    expect(error).toMatchObject({ code: 'ERR_ROCE_CONNECT', reason: 28 });
    expect([...error.privateData.subarray(0, 3)]).toEqual([7, 8, 0]);
    expect(qp.state).toBe('INIT');
  });

  it('is rejected when nobody listens, and when the listener has closed', async () => {
    const world = await TwoManagers.create();
    const connect = async () => world.until(failure(world.a.cm.connect(world.b.address, 7174, await world.a.newQp())));
    expect(await connect()).toMatchObject({ reason: 8 });
    world.b.cm.listen(7174).close();
    expect(await connect()).toMatchObject({ reason: 8 });
    expect(world.log).toEqual(['a REQ', 'b REJ', 'a REQ', 'b REJ']);
  });

  it('gives way to a newer one when the backlog is full, and comes again: both are served', async () => {
    const world = await TwoManagers.create();
    const listener = world.b.cm.listen(7174, { backlog: 1 });
    const [first, second] = [await world.a.newQp(), await world.a.newQp()];
    const connecting = [first, second].map((qp) => world.a.cm.connect(world.b.address, 7174, qp));
    await world.pass(1e6);
    expect(world.b.cm.counters()).toMatchObject({ evicted: 1, refused: 0 });
    const [active] = await world.until(Promise.all([Promise.all(connecting), world.acceptAll(listener, 2)]));
    expect(active.map(({ qp }) => qp.state)).toEqual(['RTS', 'RTS']);
    expect(world.events.nowNs).toBeLessThan(2 * RESEND_NS);
  });

  it('is rejected for want of resources when its address has as many as it may', async () => {
    const world = await TwoManagers.create({ limits: { connectionsPerAddress: 1 } });
    const { passive } = await world.connectOne();
    const listener = world.b.cm.listen(7174);
    const one = failure(world.a.cm.connect(world.b.address, 7174, await world.a.newQp()));
    expect(await world.until(one)).toMatchObject({ reason: 3 });
    await world.until(passive.disconnect());
    const connecting = world.a.cm.connect(world.b.address, 7174, await world.a.newQp());
    const [active] = await world.until(Promise.all([connecting, world.acceptAll(listener, 1)]));
    expect(active.qp.state).toBe('RTS');
  });

  it('is not sent when its path MTU is not one of InfiniBand', async () => {
    const world = await TwoManagers.create();
    const connecting = world.a.cm.connect(world.b.address, 7174, await world.a.newQp(), { pathMtu: 8192 });
    await expect(connecting).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    expect(world.log).toEqual([]);
  });

  it('takes the address of the peer as text, and names one that is not an address', async () => {
    const world = await TwoManagers.create();
    const accepting = world.acceptAll(world.b.cm.listen(7174), 1);
    await world.until(Promise.all([world.a.cm.connect('192.0.2.2', 7174, await world.a.newQp()), accepting]));
    const connect = async (address: unknown) => world.a.cm.connect(address as string, 7174, await world.a.newQp());
    await expect(connect('192.0.2')).rejects.toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
    await expect(connect({ text: '192.0.2.2' })).rejects.toMatchObject({
      code: 'ERR_ROCE_INVALID_ARGUMENT',
      message: expect.stringContaining('the remote address'),
    });
    await expect(connect('::1')).rejects.toMatchObject({ code: 'ERR_ROCE_ADDRESS_FAMILY' });
  });
});

describe('silence', () => {
  it('ends connecting after all retries, and tells the listener', async () => {
    const world = await TwoManagers.create({ timing: { maxRetries: 3 } });
    world.fates = (from) => (from === 'b' ? 'lose' : undefined);
    const listener = world.b.cm.listen(7174);
    const qp = await world.a.newQp();
    const error = await world.until(failure(world.a.cm.connect(world.b.address, 7174, qp)));
    expect(error).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    expect(error).not.toBeInstanceOf(ConnectionRejected);
    expect(error.message).toContain('no answer');
    expect(world.log.filter((entry) => entry === 'a REQ')).toHaveLength(4);
    expect(world.events.nowNs).toBeGreaterThanOrEqual(4 * RESEND_NS);
    // The REJ says so, and the request that was never taken is gone.
    await world.pass(1e6);
    const peer = listener.next();
    const late = world.a.cm.connect(world.b.address, 7174, await world.a.newQp());
    world.fates = () => undefined;
    const request = await world.until(peer);
    const [connection] = await world.until(Promise.all([late, request.accept(await world.b.newQp())]));
    expect(connection.qp.state).toBe('RTS');
  });

  it('of a peer that gave up meanwhile makes accepting fail', async () => {
    const world = await TwoManagers.create();
    const listener = world.b.cm.listen(7174);
    const stop = new AbortController();
    const connecting = failure(
      world.a.cm.connect(world.b.address, 7174, await world.a.newQp(), { signal: stop.signal }),
    );
    const request = await world.until(listener.next());
    stop.abort();
    await world.until(connecting);
    await world.pass(1e6);
    expect(request.isPending).toBe(false);
    const qp = await world.b.newQp();
    expect(await world.until(failure(request.accept(qp)))).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    expect(qp.state).toBe('RESET');
  });

  it('ends accepting too', async () => {
    const world = await TwoManagers.create({ timing: { maxRetries: 2 } });
    world.fates = (_, name) => (name === 'REP' ? 'lose' : undefined);
    const listener = world.b.cm.listen(7174);
    const accepting = failure(world.acceptAll(listener, 1));
    const connecting = failure(world.a.cm.connect(world.b.address, 7174, await world.a.newQp()));
    expect(await world.until(accepting)).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    expect(await world.until(connecting)).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });

  it('ends disconnecting', async () => {
    const world = await TwoManagers.create({ timing: { maxRetries: 2 } });
    const { active } = await world.connectOne();
    world.fates = () => 'lose';
    await world.until(active.disconnect());
    expect(world.log.filter((entry) => entry === 'a DREQ')).toHaveLength(3);
    expect(active.qp.state).toBe('ERR');
  });

  it('can be cut short', async () => {
    const world = await TwoManagers.create();
    world.fates = () => 'lose';
    const stop = new AbortController();
    const connecting = failure(
      world.a.cm.connect(world.b.address, 7174, await world.a.newQp(), { signal: stop.signal }),
    );
    await world.pass(1e6);
    stop.abort();
    expect(await world.until(connecting)).toMatchObject({ code: 'ERR_ROCE_ABORTED' });
    expect(world.events.nowNs).toBeLessThan(RESEND_NS);
  });
});

it('a program that takes its time is waited for: MRA', async () => {
  const world = await TwoManagers.create({ timing: { maxRetries: 2 } });
  const listener = world.b.cm.listen(7174);
  const connecting = world.a.cm.connect(world.b.address, 7174, await world.a.newQp());
  const request = await world.until(listener.next());
  await world.pass(10 * RESEND_NS);
  expect(world.log).toEqual(['a REQ', 'a REQ', 'b MRA']);
  const accepting = request.accept(await world.b.newQp());
  const [active] = await world.until(Promise.all([connecting, accepting]));
  expect(active.qp.state).toBe('RTS');
});

it('both sides disconnect at once', async () => {
  const world = await TwoManagers.create();
  const { active, passive } = await world.connectOne();
  await world.until(Promise.all([active.disconnect(), passive.disconnect()]));
  await world.pass(1e6);
  expect(world.log.slice(3).sort()).toEqual(['a DREP', 'a DREQ', 'b DREP', 'b DREQ']);
  expect(world.a.cm.counters().retries + world.b.cm.counters().retries).toBe(0);
});

describe('bug 30: a peer that was killed and comes back', () => {
  it('at once, as another process: it is somebody else, whatever its QPNs', async () => {
    const world = await TwoManagers.create();
    const old = await world.connectOne();
    await world.restartA('second');
    const { active, passive } = await world.connectOne();
    expect(active.qp.qpn).toBe(old.active.qp.qpn);
    await world.exchange({ side: world.a, qp: active.qp }, { side: world.b, qp: passive.qp });
  });

  it('with the GUID and QPN of a live connection: that one is stale, and ends', async () => {
    const world = await TwoManagers.create();
    const old = await world.connectOne();
    await world.restartA('first');
    const qp = await world.a.newQp();
    expect(qp.qpn).toBe(old.active.qp.qpn);
    // The communication IDs must differ, or it would be taken for a repetition: one is used up.
    const stop = new AbortController();
    world.fates = () => 'lose';
    const lost = failure(world.a.cm.connect(world.b.address, 7174, qp, { signal: stop.signal }));
    await world.pass(1e6);
    stop.abort();
    await world.until(lost);
    world.fates = () => undefined;
    const listener = world.b.cm.listen(7174);
    const stale = await world.until(failure(world.a.cm.connect(world.b.address, 7174, qp)));
    expect(stale).toMatchObject({ reason: 10 });
    await world.until(old.passive.disconnected);
    expect(old.passive.qp.state).toBe('ERR');
    listener.close();
    const again = await world.connectOne();
    expect(again.active.qp.state).toBe('RTS');
  });

  it('with the GUID and QPN of a connection in TIMEWAIT: rejected until that is over', async () => {
    const world = await TwoManagers.create();
    const old = await world.connectOne();
    await world.until(old.active.disconnect());
    await world.restartA('first');
    const listener = world.b.cm.listen(7174);
    const qp = await world.a.newQp();
    expect(qp.qpn).toBe(old.active.qp.qpn);
    const connect = () => world.a.cm.connect(world.b.address, 7174, qp);
    // Once with the communication ID of the old connection, and once with the next.
    expect(await world.until(failure(connect()))).toMatchObject({ reason: 10 });
    expect(await world.until(failure(connect()))).toMatchObject({ reason: 10 });
    await world.pass(2 * TIMEWAIT_NS);
    const [connection] = await world.until(Promise.all([connect(), world.acceptAll(listener, 1)]));
    expect(connection.qp.state).toBe('RTS');
  });
});

it('closing the manager ends what there is, once, and gives QP1 back', async () => {
  const world = await TwoManagers.create();
  const { active, passive } = await world.connectOne();
  world.fates = (_, name) => (name === 'REQ' ? 'lose' : undefined);
  const waiting = failure(world.b.cm.connect(world.a.address, 5, await world.b.newQp()));
  await world.pass(1e6);
  await world.until(world.b.cm.close());
  await world.until(Promise.all([active.disconnected, passive.disconnected]));
  expect(await world.until(waiting)).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  const late = failure(world.b.cm.connect(world.a.address, 5, await world.b.newQp()));
  expect(await world.until(late)).toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  const next = ConnectionManager.open(world.b.device);
  await world.until(next);
});

it('a device may be closed under its manager', async () => {
  const world = await TwoManagers.create();
  const { active } = await world.connectOne();
  void active.disconnect();
  await world.until(world.a.device.close());
  await world.until(world.a.cm.close());
  await world.until(active.disconnected);
});

describe('a datagram to QP1 that no receive has room for', () => {
  it('is dropped, and connections are made as before', async () => {
    const world = await TwoManagers.create();
    for (let n = 0; n < 3 * 256; n++) sendOversized(world);
    await world.pass(1e6);
    const { active, passive } = await world.connectOne();
    await world.exchange({ side: world.a, qp: active.qp }, { side: world.b, qp: passive.qp });
    await world.until(active.disconnect());
    await world.until(world.b.cm.close());
  });

  /** A UD message to QP1 of `b`, with the right Q_Key and 4 bytes more than a MAD has. */
  function sendOversized({ a, b }: TwoManagers): void {
    const packet = emitRoce({ opcode: UD_SEND_ONLY, destQpn: 1, qkey: 0x8001_0000, sourceQpn: 1 }, new Uint8Array(260));
    const bytes = new Uint8Array(packet.length + ICRC_BYTES);
    bytes.set(packet);
    sealIcrc(new IcrcFlow(a.address, b.address, 0xc000, 4791), bytes, 0, bytes.length, 0, undefined);
    const facts = { ecn: 0, dscp: 0, ipId: 0, source: a.address, sourcePort: 0xc000 };
    b.host.receive({
      bytes,
      offset: 0,
      length: bytes.length,
      destination: b.address,
      destinationPort: 4791,
      ...facts,
    });
  }
});
