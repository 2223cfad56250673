import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CmLimits, LIMITS_DEFAULT } from '../../src/cm/cm-limits.js';
import { CmProtocol } from '../../src/cm/cm-protocol.js';
import type { CmEndpoint, CmEvent } from '../../src/cm/endpoint.js';
import { encodeIpPrivateData, tcpServiceId } from '../../src/cm/ip-addressing.js';
import { buildMad, type CmMad, encodeMad, type MessageFields, parseMad } from '../../src/cm/messages.js';
import type { IncomingRequest } from '../../src/cm/passive-side.js';
import { LINUX_TIMING } from '../../src/cm/timing.js';
import { SeededRandom } from '../../src/core/random.js';
import { NS_PER_S } from '../../src/core/units.js';
import { IpAddress } from '../../src/packet/address.js';

const HERE = IpAddress.parse('192.0.2.1');
const PEER = IpAddress.parse('192.0.2.2');
const STRANGER = IpAddress.parse('192.0.2.3');
const NOTHING = new Uint8Array(0);
const PEER_GUID = 0x0200000000000001n;
const PEER_ID = 0x11223344;
const RESOURCES = {
  qpn: 9,
  startingPsn: 1,
  responderResources: 1,
  initiatorDepth: 1,
  rnrRetryCount: 7,
  privateData: NOTHING,
};

/** One side of the protocol, with the peer played by the test. */
class Bench {
  readonly sent: Array<{ to: string; mad: CmMad }> = [];
  readonly events: CmEvent[] = [];
  readonly requests: Array<{ endpoint: CmEndpoint; request: IncomingRequest }> = [];
  readonly protocol: CmProtocol;
  readonly note = (event: CmEvent) => {
    this.events.push(event);
  };

  constructor({
    anyClaimedAddress = false,
    limits = {},
  }: { anyClaimedAddress?: boolean; limits?: Partial<CmLimits> } = {}) {
    this.protocol = new CmProtocol({
      address: HERE,
      pathMtuCodeMax: 3,
      random: new SeededRandom(1).stream('cm'),
      timing: LINUX_TIMING,
      limits: { ...LIMITS_DEFAULT, ...limits },
      anyClaimedAddress,
      dscp: 0,
      send: (to, mad) => this.sent.push({ to: to.text, mad: parseMad(mad) as CmMad }),
    });
    this.protocol.listen(tcpServiceId(7174), (endpoint, request) => {
      endpoint.onEvent = this.note;
      this.requests.push({ endpoint, request });
      return true;
    });
  }

  connect(): CmEndpoint {
    return this.protocol.connect(
      {
        remote: PEER,
        serviceId: tcpServiceId(7174),
        sourcePort: 50_000,
        pathMtuCode: 3,
        retryCount: 7,
        qpn: 0x11,
        startingPsn: 1,
        responderResources: 1,
        initiatorDepth: 1,
        rnrRetryCount: 7,
        privateData: NOTHING,
      },
      this.note,
      0,
    );
  }

  receive(mad: Uint8Array, from = PEER, now = 0): void {
    this.protocol.receive(from, mad, now);
  }

  /** The peer asks to connect. */
  receiveRequest(changes: Partial<MessageFields<'REQ'>> = {}, from = PEER): void {
    this.receive(request(changes), from);
  }

  /** Names of what was sent, with the reason of a REJ. */
  get words(): string[] {
    return this.sent.map(({ mad }) => (mad.name === 'REJ' ? `REJ ${mad.fields.reason}` : mad.name));
  }
}

function request(changes: Partial<MessageFields<'REQ'>> = {}): Uint8Array {
  return buildMad('REQ', 5n, {
    localCommId: PEER_ID,
    serviceId: tcpServiceId(7174),
    localCaGuid: PEER_GUID,
    localQpn: 0x22,
    localResponseTimeout: 20,
    maxCmRetries: 15,
    pathMtu: 3,
    primaryLocalGid: PEER.gid,
    primaryRemoteGid: HERE.gid,
    primaryLocalAckTimeout: 17,
    privateData: encodeIpPrivateData({ source: PEER, destination: HERE, sourcePort: 1 }, NOTHING),
    ...changes,
  });
}

/** What a REQ says of where it comes from. */
function from(source: IpAddress, destination = HERE): Partial<MessageFields<'REQ'>> {
  return {
    primaryLocalGid: source.gid,
    primaryRemoteGid: destination.gid,
    privateData: encodeIpPrivateData({ source, destination, sourcePort: 1 }, NOTHING),
  };
}

describe('a REQ is refused', () => {
  it.each<[string, Partial<MessageFields<'REQ'>>, number]>([
    ['with a service nobody serves', { serviceId: tcpServiceId(7175) }, 8],
    ['without an IP addressing header', { privateData: Uint8Array.of(0, 0x70) }, 8],
    ['for another transport', { transportType: 1 }, 9],
    ['with a path from somewhere else', { primaryLocalGid: STRANGER.gid }, 12],
    ['with a path to somewhere else', { primaryRemoteGid: STRANGER.gid }, 12],
    ['with a header from somewhere else', { ...from(STRANGER), primaryLocalGid: PEER.gid }, 12],
    ['with a header to somewhere else', { ...from(PEER, STRANGER), primaryRemoteGid: HERE.gid }, 12],
    ['from nobody', from(IpAddress.parse('0.0.0.0')), 12],
    ['to everybody', from(PEER, IpAddress.parse('255.255.255.255')), 12],
    ['with a queue pair of management', { localQpn: 1 }, 5],
    ['with a path MTU the port cannot do', { pathMtu: 4 }, 26],
    ['with no path MTU', { pathMtu: 0 }, 26],
  ])('%s', (_, changes, reason) => {
    const bench = new Bench();
    bench.receiveRequest(changes);
    expect(bench.words).toEqual([`REJ ${reason}`]);
    expect(bench.sent[0]).toMatchObject({
      to: PEER.text,
      mad: { transactionId: 5n, fields: { remoteCommId: PEER_ID } },
    });
    expect(bench.requests).toHaveLength(0);
  });

  it('but not when it is right', () => {
    const bench = new Bench();
    bench.receiveRequest();
    expect(bench.words).toEqual([]);
    expect(bench.requests).toHaveLength(1);
  });
});

describe('a stranger', () => {
  it('cannot answer, end or refuse a connection, whatever IDs it knows', () => {
    const bench = new Bench();
    const { localCommId } = bench.connect();
    const ids = { localCommId: PEER_ID, remoteCommId: localCommId };
    bench.receive(buildMad('REJ', 0n, { ...ids, reason: 28 }), STRANGER);
    bench.receive(buildMad('REP', 0n, { ...ids, localQpn: 7, localCaGuid: PEER_GUID }), STRANGER);
    bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: 0x11 }), STRANGER);
    expect(bench.events).toEqual([]);
    bench.receive(buildMad('REP', 0n, { ...ids, localQpn: 7, localCaGuid: PEER_GUID }), PEER);
    expect(bench.events).toMatchObject([{ type: 'CONNECT_RESPONSE' }]);
  });

  it('is another peer, even with the same GUID and IDs', () => {
    const bench = new Bench();
    bench.receiveRequest();
    bench.receiveRequest(from(STRANGER), STRANGER);
    expect(bench.requests.map(({ endpoint }) => endpoint.remote.text)).toEqual([PEER.text, STRANGER.text]);
    expect(bench.protocol.counters.duplicates).toBe(0);
  });
});

describe('what belongs to no connection', () => {
  it('DREQ: is agreed to, for the peer has not heard our DREP', () => {
    const bench = new Bench();
    bench.receive(buildMad('DREQ', 9n, { localCommId: 1, remoteCommId: 2, remoteQpn: 3 }));
    expect(bench.sent).toMatchObject([
      { mad: { name: 'DREP', transactionId: 9n, fields: { localCommId: 2, remoteCommId: 1 } } },
    ]);
  });

  it('REP: is rejected, or the peer would wait a minute', () => {
    const bench = new Bench();
    bench.receive(buildMad('REP', 9n, { localCommId: 1, remoteCommId: 2 }));
    expect(bench.words).toEqual(['REJ 6']);
  });

  it('RTU: is rejected, or the peer would take itself for connected', () => {
    const bench = new Bench();
    bench.receive(buildMad('RTU', 9n, { localCommId: 1, remoteCommId: 2 }));
    expect(bench.sent).toMatchObject([
      { mad: { name: 'REJ', transactionId: 9n, fields: { localCommId: 2, remoteCommId: 1, message: 2, reason: 6 } } },
    ]);
  });

  it('MRA, REJ, DREP and SIDR_REP: are counted', () => {
    const bench = new Bench();
    for (const name of ['MRA', 'REJ', 'DREP', 'SIDR_REP'] as const) bench.receive(buildMad(name, 0n, {}));
    expect(bench.sent).toEqual([]);
    expect(bench.protocol.counters).toMatchObject({ received: 4, unmatched: 4 });
  });

  it('SIDR_REQ for a service that nobody has: is refused', () => {
    const bench = new Bench();
    bench.receive(buildMad('SIDR_REQ', 3n, { requestId: 77, serviceId: 5n }));
    expect(bench.sent).toMatchObject([
      { mad: { name: 'SIDR_REP', transactionId: 3n, fields: { requestId: 77, serviceId: 5n, status: 1 } } },
    ]);
  });
});

it('a DREQ for another QP than the connection has is not heeded', () => {
  const bench = new Bench();
  const endpoint = bench.connect();
  const ids = { localCommId: PEER_ID, remoteCommId: endpoint.localCommId };
  bench.receive(buildMad('REP', 0n, { ...ids, localQpn: 7, localCaGuid: PEER_GUID }));
  bench.protocol.confirm(endpoint, 0);
  bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: 0x12 }));
  expect(endpoint.state).toBe('ESTABLISHED');
  bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: 0x11 }));
  expect(endpoint.state).toBe('TIMEWAIT');
});

it('TIMEWAIT answers every DREQ, and then it is over', () => {
  const bench = new Bench();
  const endpoint = bench.connect();
  const ids = { localCommId: PEER_ID, remoteCommId: endpoint.localCommId };
  bench.receive(buildMad('REP', 0n, { ...ids, localQpn: 7, localCaGuid: PEER_GUID }));
  bench.protocol.confirm(endpoint, 0);
  for (let i = 0; i < 3; i++) bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: 0x11 }));
  expect(bench.words).toEqual(['REQ', 'RTU', 'DREP', 'DREP', 'DREP']);
  expect(bench.events.map(({ type }) => type)).toEqual(['CONNECT_RESPONSE', 'DISCONNECTED']);
  bench.protocol.onDeadline(bench.protocol.nextDeadlineNs);
  expect(endpoint.state).toBe('CLOSED');
  expect(bench.protocol.nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
});

it.each(['0.0.0.0', '255.255.255.255', '224.0.0.1', '::', 'ff02::1'])(
  'what comes from %s is counted and not answered',
  (text) => {
    const bench = new Bench();
    const source = IpAddress.parse(text);
    bench.receiveRequest(from(source), source);
    bench.receive(buildMad('DREQ', 9n, { localCommId: 1, remoteCommId: 2, remoteQpn: 3 }), source);
    expect(bench.sent).toEqual([]);
    expect(bench.requests).toEqual([]);
    expect(bench.protocol.counters).toMatchObject({ received: 2, badAddress: 2 });
  },
);

describe('a translator of addresses between the sides', () => {
  const claims = from(STRANGER, IpAddress.parse('198.51.100.1'));

  it('is not believed', () => {
    const bench = new Bench();
    bench.receiveRequest(claims);
    expect(bench.words).toEqual(['REJ 12']);
    expect(bench.protocol.counters).toMatchObject({ refused: 1, refusedAddress: 1 });
  });

  it('is believed when the program says so; packets go to where the datagram came from', () => {
    const bench = new Bench({ anyClaimedAddress: true });
    bench.receiveRequest(claims);
    expect(bench.requests.map(({ endpoint }) => endpoint.remote)).toEqual([PEER]);
    bench.receiveRequest({ ...from(IpAddress.parse('224.0.0.1')), localCommId: 2 });
    expect(bench.words).toEqual(['REJ 12']);
  });
});

describe('the end of a connection', () => {
  const IDS = { localCommId: PEER_ID, localCaGuid: PEER_GUID };
  const reject = (endpoint: CmEndpoint, from = PEER_ID) =>
    buildMad('REJ', 0n, { localCommId: from, remoteCommId: endpoint.localCommId, message: 1, reason: 4 });

  /** A connection of ours, up to the state. */
  function activeIn(bench: Bench, state: 'REP_RCVD' | 'ESTABLISHED' | 'DREQ_SENT'): CmEndpoint {
    const endpoint = bench.connect();
    bench.receive(buildMad('REP', 0n, { ...IDS, remoteCommId: endpoint.localCommId, localQpn: 7 }));
    if (state !== 'REP_RCVD') bench.protocol.confirm(endpoint, 0);
    if (state === 'DREQ_SENT') bench.protocol.disconnect(endpoint, 0);
    return endpoint;
  }

  it.each(['REP_RCVD', 'ESTABLISHED', 'DREQ_SENT'] as const)('by a REJ, in %s', (state) => {
    const bench = new Bench();
    const endpoint = activeIn(bench, state);
    bench.receive(reject(endpoint, PEER_ID + 1));
    bench.receive(reject(endpoint), STRANGER);
    expect(endpoint.state).toBe(state);
    expect(bench.protocol.counters.unmatched).toBe(2);
    bench.receive(reject(endpoint));
    expect(endpoint.state).toBe('TIMEWAIT');
    expect(bench.events.at(-1)).toMatchObject({ type: 'REJECTED', reason: 4 });
  });

  it('a repeated REP in ESTABLISHED is answered by the RTU again', () => {
    const bench = new Bench();
    const endpoint = activeIn(bench, 'ESTABLISHED');
    bench.receive(buildMad('REP', 0n, { ...IDS, remoteCommId: endpoint.localCommId, localQpn: 7 }));
    expect(bench.words).toEqual(['REQ', 'RTU', 'RTU']);
  });

  it('a DREQ does not reach a request that nobody has answered', () => {
    const bench = new Bench();
    bench.receiveRequest();
    const [{ endpoint }] = bench.requests;
    bench.receive(buildMad('DREQ', 0n, { localCommId: PEER_ID, remoteCommId: endpoint.localCommId }));
    expect(endpoint.state).toBe('REQ_RCVD');
    expect(bench.words).toEqual([]);
  });
});

describe('no peer says how long it is waited for', () => {
  const LONG = { localResponseTimeout: 31, maxCmRetries: 15, primaryLocalAckTimeout: 31 };
  const reply = (bench: Bench, endpoint: CmEndpoint) => bench.protocol.reply(endpoint, RESOURCES, 0);

  /** Runs its deadlines until nothing is due; when the last was, in seconds. */
  function rest(bench: Bench): number {
    let now = 0;
    while (bench.protocol.nextDeadlineNs !== Number.POSITIVE_INFINITY) {
      now = bench.protocol.nextDeadlineNs;
      bench.protocol.onDeadline(now);
    }
    return now / 1e9;
  }

  it('for an RTU: 20 s', () => {
    const bench = new Bench();
    bench.receiveRequest(LONG);
    reply(bench, bench.requests[0].endpoint);
    expect(rest(bench)).toBe(20);
    expect(bench.events).toEqual([{ type: 'UNREACHABLE' }]);
    expect(bench.words).toEqual(['REP', 'REP', 'REP', 'REP', 'REP', 'REJ 4']);
    expect(bench.protocol.counters).toMatchObject({ expired: 1, retries: 4 });
  });

  it('nor how fast it is asked again: at most fifteen times in 16 ms', () => {
    const bench = new Bench();
    bench.receiveRequest({ ...LONG, localResponseTimeout: 0 });
    reply(bench, bench.requests[0].endpoint);
    expect(rest(bench)).toBeCloseTo(16 * 0.001048576, 6);
    expect(bench.sent).toHaveLength(17);
  });

  it('by an MRA: 69 s more, once', () => {
    const bench = new Bench();
    bench.receiveRequest(LONG);
    const [{ endpoint }] = bench.requests;
    reply(bench, endpoint);
    const mra = { localCommId: PEER_ID, remoteCommId: endpoint.localCommId, message: 1, serviceTimeout: 31 };
    for (let now = 0; now < 300e9; now += 1e9) {
      bench.receive(buildMad('MRA', 0n, mra), PEER, now);
      bench.protocol.onDeadline(now);
    }
    expect(endpoint.state).toBe('CLOSED');
    expect(bench.protocol.counters.expired).toBe(1);
  });

  it('in TIMEWAIT: 4.3 s', () => {
    const bench = new Bench();
    bench.receiveRequest(LONG);
    const [{ endpoint }] = bench.requests;
    reply(bench, endpoint);
    const ids = { localCommId: PEER_ID, remoteCommId: endpoint.localCommId };
    bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: RESOURCES.qpn }));
    expect(endpoint.state).toBe('TIMEWAIT');
    expect(rest(bench)).toBeCloseTo(4.295, 3);
  });

  it('for the decision of the local program: while the peer goes on asking, and 137 s', () => {
    const bench = new Bench();
    bench.receiveRequest(LONG);
    expect(rest(bench)).toBeCloseTo(137.4, 1);
    expect(bench.requests[0].endpoint.state).toBe('CLOSED');
  });
});

describe('who makes room', () => {
  let id = 0;
  const ask = (bench: Bench, source: IpAddress, guid = PEER_GUID) => {
    id++;
    bench.receiveRequest({ ...from(source), localCommId: id, localQpn: 16 + id, localCaGuid: guid }, source);
    return bench.requests.at(-1)!.endpoint;
  };
  /** A peer that connects once, and leaves. */
  function prove(bench: Bench, source: IpAddress, guid: bigint): void {
    const endpoint = ask(bench, source, guid);
    bench.protocol.reply(endpoint, RESOURCES, 0);
    const ids = { localCommId: endpoint.remoteCommId, remoteCommId: endpoint.localCommId };
    bench.receive(buildMad('RTU', 0n, ids), source);
    bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: RESOURCES.qpn }), source);
    expect(endpoint.state).toBe('TIMEWAIT');
  }

  it('the oldest of the address that has the most', () => {
    const bench = new Bench({ limits: { halfOpen: 4 } });
    const honest = ask(bench, PEER);
    const theirs = [ask(bench, STRANGER), ask(bench, STRANGER), ask(bench, STRANGER)];
    ask(bench, STRANGER);
    expect(theirs.map(({ state }) => state)).toEqual(['CLOSED', 'REQ_RCVD', 'REQ_RCVD']);
    expect(honest.state).toBe('REQ_RCVD');
    expect(bench.events).toEqual([{ type: 'EVICTED' }]);
    expect(bench.words).toEqual([]);
  });

  it('those who have proved nothing before those who have answered, at the same address, too', () => {
    const bench = new Bench({ limits: { halfOpenPerAddress: 3 } });
    prove(bench, PEER, 77n);
    const honest = ask(bench, PEER, 77n);
    const forged = Array.from({ length: 100 }, () => ask(bench, PEER));
    expect(honest.state).toBe('REQ_RCVD');
    expect(forged.filter(({ state }) => state === 'REQ_RCVD')).toHaveLength(2);
    expect(bench.protocol.counters.evicted).toBe(98);
  });

  it('nobody, when all have a better claim: the request is left unanswered, and its peer repeats it', () => {
    const bench = new Bench({ limits: { halfOpen: 2 } });
    const others = [1, 2].map((n) => IpAddress.parse(`198.51.100.${n}`));
    for (const [i, other] of others.entries()) prove(bench, other, BigInt(i));
    for (const [i, other] of others.entries()) ask(bench, other, BigInt(i));
    const { length } = bench.words;
    ask(bench, PEER);
    expect(bench.words).toHaveLength(length);
    expect(bench.protocol.counters.deferred).toBe(1);
  });

  /** Peers from the second on are new ones, of one address or of several. */
  it.each([
    ['one address', (_: number) => PEER, PEER_GUID],
    ['several addresses', (n: number) => IpAddress.parse(`198.51.100.${n}`), 3n],
  ])('no reply whose RTU may still come, to peers of %s', (_, sourceOf, guid) => {
    const bench = new Bench({ limits: { halfOpen: 4, halfOpenPerAddress: 4 } });
    const replied = [1, 2, 3, 4].map((n) => ask(bench, sourceOf(n), guid));
    for (const endpoint of replied) bench.protocol.reply(endpoint, RESOURCES, 0);
    ask(bench, sourceOf(5), guid);
    expect(bench.protocol.counters).toMatchObject({ evicted: 0, deferred: 1 });
    // The first RTU shows that the peer is at its address: it changes nothing for the replies to its other requests.
    const rtu = ({ remoteCommId, localCommId }: CmEndpoint) =>
      buildMad('RTU', 0n, { localCommId: remoteCommId, remoteCommId: localCommId });
    bench.receive(rtu(replied[0]), replied[0].remote);
    ask(bench, sourceOf(6), guid);
    ask(bench, sourceOf(7), guid);
    for (const endpoint of replied.slice(1)) bench.receive(rtu(endpoint), endpoint.remote);
    expect(replied.map(({ state }) => state)).toEqual(Array(4).fill('ESTABLISHED'));
  });

  it('negative control: a reply whose RTU is late', () => {
    const bench = new Bench({ limits: { halfOpen: 2 } });
    const replied = [1, 2].map((n) => ask(bench, IpAddress.parse(`198.51.100.${n}`)));
    for (const endpoint of replied) bench.protocol.reply(endpoint, RESOURCES, 0);
    bench.receive(request({ ...from(PEER), localCommId: 900 }), PEER, 2 * NS_PER_S);
    expect(replied.map(({ state }) => state)).toEqual(['CLOSED', 'REP_SENT']);
  });

  it('nobody for one of an unknown peer, where the rest is kept for known ones', () => {
    const bench = new Bench({ limits: { halfOpen: 8, halfOpenPerAddress: 8 } });
    prove(bench, PEER, 77n);
    const theirs = Array.from({ length: 7 }, (_, n) => ask(bench, IpAddress.parse(`198.51.100.${n}`)));
    for (const endpoint of theirs) bench.protocol.reply(endpoint, RESOURCES, 0);
    ask(bench, STRANGER);
    expect(bench.protocol.counters).toMatchObject({ evicted: 0, deferred: 1 });
    expect(ask(bench, PEER, 77n).state).toBe('REQ_RCVD');
  });

  it('a proved peer that holds more than the newcomer', () => {
    const bench = new Bench({ limits: { halfOpen: 3 } });
    prove(bench, STRANGER, 5n);
    const theirs = [1, 2, 3].map(() => ask(bench, STRANGER, 5n));
    const honest = ask(bench, PEER);
    expect([theirs[0].state, honest.state]).toEqual(['CLOSED', 'REQ_RCVD']);
  });

  it('endpoints in TIMEWAIT, of their address and when all is full; never a connection', () => {
    const bench = new Bench({ limits: { endpoints: 4, timewaitPerAddress: 2 } });
    for (let i = 0; i < 3; i++) prove(bench, STRANGER, 5n);
    expect(bench.protocol.counters.timewaitCut).toBe(1);
    const ours = [bench.connect(), bench.connect(), bench.connect()];
    expect(bench.protocol.counters.timewaitCut).toBe(2);
    bench.connect();
    expect(bench.protocol.counters.timewaitCut).toBe(3);
    expect(() => bench.connect()).toThrow(/there are already 4 connections/);
    expect(ours.every(({ state }) => state === 'REQ_SENT')).toBe(true);
  });
});

it('no bytes whatsoever make it throw', () => {
  const names = ['REQ', 'MRA', 'REJ', 'REP', 'RTU', 'DREQ', 'DREP', 'SIDR_REQ', 'SIDR_REP'] as const;
  const change = fc.tuple(fc.nat(255), fc.nat(255));
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.array(change, { maxLength: 20 }),
      fc.nat(256),
      (name, changes, length) => {
        const bench = new Bench();
        const { localCommId } = bench.connect();
        const mad = name === 'REQ' ? request() : buildMad(name, 0n, { remoteCommId: localCommId } as never);
        for (const [offset, value] of changes) mad[offset] = value;
        bench.receive(mad.subarray(0, length));
        bench.receive(mad);
        bench.receive(mad);
        const { received, malformed } = bench.protocol.counters;
        expect([received, malformed >= (length < 256 ? 1 : 0)]).toEqual([3, true]);
      },
    ),
  );
});

it('any message that parses is encoded again to the same fields', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 232, maxLength: 232 }), fc.integer({ min: 0x10, max: 0x18 }), (body, id) => {
      const mad = request();
      mad.set(body, 24);
      mad[17] = id;
      const parsed = parseMad(mad) as CmMad;
      expect(parseMad(encodeMad(parsed))).toEqual(parsed);
    }),
  );
});
