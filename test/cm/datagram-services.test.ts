import { describe, expect, it } from 'vitest';
import type { CmListener } from '../../src/cm/cm-listener.js';
import { type DatagramRequest, ServiceRejected, startDatagrams } from '../../src/cm/datagram-services.js';
import { codeToNs, LINUX_TIMING } from '../../src/cm/timing.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { GRH_BYTES } from '../../src/packet/roce.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { Dice } from '../support/dice.js';
import { type Side, TwoManagers } from './two-managers.js';

const PORT = 7174;
const RESEND_NS = codeToNs(LINUX_TIMING.responseTimeout);

async function datagramQp(side: Side): Promise<QueuePair> {
  const qp = await side.pd.createQp({ type: 'UD', sendCq: side.cq, maxSendWr: 4, maxRecvWr: 4 });
  await startDatagrams(qp);
  return qp;
}

function failure(promise: Promise<unknown>): Promise<ServiceRejected> {
  return promise.then(
    () => Promise.reject(new Error('it should have failed')),
    (error) => error,
  );
}

/** Takes the next request. */
async function acceptNext(listener: CmListener<DatagramRequest>, qp: QueuePair): Promise<DatagramRequest> {
  const request = await listener.next();
  request.accept(qp, { privateData: Uint8Array.of(9) });
  return request;
}

async function worldWithService(options: Parameters<typeof TwoManagers.create>[0] = {}) {
  const world = await TwoManagers.create(options);
  const listener = world.b.cm.listenForDatagrams(PORT);
  const qp = await datagramQp(world.b);
  return { world, listener, qp };
}

describe.each([
  ['IPv4', ['192.0.2.1', '192.0.2.2']],
  ['IPv6', ['2001:db8::1', '2001:db8::2']],
] as const)('over %s', (_, addresses) => {
  it('a service is found, and gets a message from who has asked', async () => {
    const { world, listener, qp } = await worldWithService({ addresses });
    const resolving = world.a.cm.resolve(world.b.address, PORT, world.a.pd, { privateData: Uint8Array.of(1, 2) });
    const [service, request] = await world.until(Promise.all([resolving, acceptNext(listener, qp)]));
    expect(service.destination).toMatchObject({ remoteQpn: qp.qpn, remoteQkey: 0x01234567 });
    expect([service.privateData[0], service.privateData.length]).toEqual([9, 136]);
    expect([...request.privateData.subarray(0, 3), request.privateData.length]).toEqual([1, 2, 0, 180]);
    expect([request.remote.text, request.isPending]).toEqual([world.a.address.text, false]);
    expect(world.log).toEqual(['a SIDR_REQ', 'b SIDR_REP']);
    const from = await datagramQp(world.a);
    qp.postRecv({ sges: [world.b.mr.sge(0, GRH_BYTES + 16)] });
    from.postSend({ opcode: 'SEND', sges: [world.a.mr.sge(0, 16)], ...service.destination });
    expect(await world.until(world.b.cq.next())).toMatchObject({ byteLen: GRH_BYTES + 16, sourceQpn: from.qpn });
  });
});

it('a message with another Q_Key than the answer named does not arrive: the negative twin', async () => {
  const { world, listener, qp } = await worldWithService();
  const resolving = world.a.cm.resolve(world.b.address, PORT, world.a.pd);
  const [{ destination }] = await world.until(Promise.all([resolving, acceptNext(listener, qp)]));
  const from = await datagramQp(world.a);
  from.postSend({ opcode: 'SEND', sges: [world.a.mr.sge(0, 16)], ...destination, remoteQkey: 0x01234568 });
  await world.pass(1e6);
  expect(world.b.device.counters().rx_drop_qkey).toBe(1);
});

describe('one datagram', () => {
  it.each([
    ['a', 'SIDR_REQ', 'lose', 1],
    ['b', 'SIDR_REP', 'lose', 1],
    ['a', 'SIDR_REQ', 'corrupt', 1],
    ['b', 'SIDR_REP', 'corrupt', 1],
    ['a', 'SIDR_REQ', 'double', 0],
    ['b', 'SIDR_REP', 'double', 0],
  ] as const)('from %s, the %s: %s', async (from, name, fate, retries) => {
    const { world, listener, qp } = await worldWithService();
    world.fates = (sender, message, nth) => (sender === from && message === name && nth === 1 ? fate : undefined);
    const resolving = world.a.cm.resolve(world.b.address, PORT, world.a.pd);
    const [{ destination }] = await world.until(Promise.all([resolving, acceptNext(listener, qp)]));
    expect(destination.remoteQpn).toBe(qp.qpn);
    expect(world.a.cm.counters().retries).toBe(retries);
    expect(world.events.nowNs >= RESEND_NS).toBe(retries === 1);
    await world.pass(1e6); // The program is asked once, whatever came twice.
    const another = listener.next({ timeoutMs: 1000 });
    expect((await failure(world.until(another))).code).toBe('ERR_ROCE_TIMEOUT');
  });
});

it.each([1, 2, 3])('sixteen resolve at once over a link that loses a third of the datagrams, seed %i', async (seed) => {
  const { world, listener, qp } = await worldWithService({ seed });
  const dice = new Dice(new SeededRandom(seed).stream('link'));
  world.fates = () => (dice.chance(1 / 3) ? 'lose' : undefined);
  let taken = 0;
  const serving = (async () => {
    for await (const request of listener) {
      taken++;
      request.accept(qp);
    }
  })();
  const asking = Array.from({ length: 16 }, () => world.a.cm.resolve(world.b.address, PORT, world.a.pd));
  const services = await world.until(Promise.all(asking));
  expect(services.map(({ destination }) => destination.remoteQpn)).toEqual(Array(16).fill(qp.qpn));
  expect([taken, world.a.cm.counters().retries > 0]).toEqual([16, true]);
  listener.close();
  await world.until(serving);
});

describe('a service that is not there', () => {
  it('nobody serves the port; a listener for connections is none', async () => {
    const world = await TwoManagers.create();
    world.b.cm.listen(PORT);
    const error = await failure(world.until(world.a.cm.resolve(world.b.address, PORT, world.a.pd)));
    expect(error).toBeInstanceOf(ServiceRejected);
    expect([error.code, error.status]).toEqual(['ERR_ROCE_CONNECT', 1]);
    expect(error.message).toContain('cannot resolve 192.0.2.2 port 7174: no datagram service on that port (1)');
  });

  it('and one for datagrams is none for connections', async () => {
    const { world } = await worldWithService();
    const error = await failure(world.until(world.a.cm.connect(world.b.address, PORT, await world.a.newQp())));
    expect(error.message).toContain('no listener on that port (8)');
  });

  it('the program refuses, with its reasons', async () => {
    const { world, listener } = await worldWithService();
    const resolving = failure(world.a.cm.resolve(world.b.address, PORT, world.a.pd));
    (await world.until(listener.next())).reject(Uint8Array.of(7));
    const error = await world.until(resolving);
    expect([error.status, error.privateData[0], error.privateData.length]).toEqual([2, 7, 136]);
  });

  it('nobody answers', async () => {
    const { world } = await worldWithService();
    world.fates = () => 'lose';
    const error = await failure(world.until(world.a.cm.resolve(world.b.address, PORT, world.a.pd)));
    expect(error).not.toBeInstanceOf(ServiceRejected);
    expect([error.code, error.message]).toEqual(['ERR_ROCE_CONNECT', 'cannot resolve 192.0.2.2 port 7174: no answer']);
    expect(world.log).toEqual(Array(LINUX_TIMING.maxRetries + 1).fill('a SIDR_REQ'));
  });

  it('the listener closes: who waits in it is refused', async () => {
    const { world, listener } = await worldWithService();
    const resolving = failure(world.a.cm.resolve(world.b.address, PORT, world.a.pd));
    await world.pass(1e6);
    listener.close();
    expect((await world.until(resolving)).status).toBe(2);
  });
});

describe('who asks', () => {
  it('ends at its signal, its time, and the end of its manager, and sends nothing more', async () => {
    const { world } = await worldWithService();
    const stop = new AbortController();
    const { a, b } = world;
    const aborted = failure(a.cm.resolve(b.address, PORT, a.pd, { signal: stop.signal }));
    const late = failure(a.cm.resolve(b.address, PORT, a.pd, { timeoutMs: 10 }));
    const closed = failure(a.cm.resolve(b.address, PORT, a.pd));
    await world.pass(1e6);
    stop.abort();
    expect((await world.until(aborted)).code).toBe('ERR_ROCE_ABORTED');
    expect((await world.until(late)).code).toBe('ERR_ROCE_TIMEOUT');
    await world.until(a.cm.close());
    expect((await world.until(closed)).code).toBe('ERR_ROCE_CONNECT');
    await world.pass(10 * RESEND_NS);
    expect(world.log.filter((line) => line === 'a SIDR_REQ')).toHaveLength(3);
  });

  it.each([
    ['a port', [0], 'ERR_ROCE_OUT_OF_RANGE', '0 is not a port'],
    ['an option', [PORT, { timeout: 3 }], 'ERR_ROCE_UNKNOWN_NAME', "did you mean 'timeoutMs'?"],
    ['private data', [PORT, { privateData: new Uint8Array(181) }], 'ERR_ROCE_OUT_OF_RANGE', 'at most 180 fit'],
    ['an address', [PORT, {}, '2001:db8::2'], 'ERR_ROCE_ADDRESS_FAMILY', 'other address family'],
  ] as const)('%s that cannot be is refused', async (_, [port, options = {}, to = '192.0.2.2'], code, words) => {
    const { a } = await TwoManagers.create();
    const error = await failure(a.cm.resolve(IpAddress.parse(to), port, a.pd, options as object));
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(words)]);
  });
});

describe('who serves', () => {
  it('answers with a queue pair of datagrams that receives, and no other', async () => {
    const { world, listener, qp } = await worldWithService();
    const { a, b } = world;
    const resolving = a.cm.resolve(b.address, PORT, a.pd);
    const request = await world.until(listener.next());
    const fresh = await b.pd.createQp({ type: 'UD', sendCq: b.cq });
    expect(() => request.accept(fresh)).toThrow(/in RESET \(startDatagrams\(qp\) takes it to RTS\)/);
    const connected = await b.newQp();
    expect(() => request.accept(connected)).toThrow(/of type RC/);
    expect(() => request.accept(qp, { privateData: new Uint8Array(137) })).toThrow(/at most 136 fit/);
    expect(() => request.accept(qp, { qkey: -1 })).toThrow(/qkey is -1/);
    expect(() => request.accept(qp, { key: 1 } as never)).toThrow(/accept has no option 'key'/);
    request.accept(qp, { qkey: 5 });
    expect((await world.until(resolving)).destination.remoteQkey).toBe(5);
    request.reject(); // Of no effect: it is decided.
  });

  it('has one listener a port; closed, the port is free', async () => {
    const { world, listener } = await worldWithService();
    expect(() => world.b.cm.listenForDatagrams(PORT)).toThrow(/somebody serves datagrams on port 7174 already/);
    expect(() => world.b.cm.listenForDatagrams(PORT + 1, { depth: 3 } as never)).toThrow(/has no option 'depth'/);
    listener.close();
    world.b.cm.listenForDatagrams(PORT).close();
  });
});
