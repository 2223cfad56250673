import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CmEndpoint, CmEvent } from '../../src/cm/endpoint.js';
import { encodeIpPrivateData, tcpServiceId } from '../../src/cm/ip-addressing.js';
import { buildMad, type CmMad, encodeMad, type MessageFields, parseMad } from '../../src/cm/messages.js';
import { CmProtocol, type IncomingRequest } from '../../src/cm/protocol.js';
import { LINUX_TIMING } from '../../src/cm/timing.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';

const HERE = IpAddress.parse('192.0.2.1');
const PEER = IpAddress.parse('192.0.2.2');
const STRANGER = IpAddress.parse('192.0.2.3');
const NOTHING = new Uint8Array(0);
const PEER_GUID = 0x0200000000000001n;
const PEER_ID = 0x11223344;

/** One side of the protocol, with the peer played by the test. */
class Bench {
  readonly sent: Array<{ to: string; mad: CmMad }> = [];
  readonly events: CmEvent[] = [];
  readonly requests: Array<{ endpoint: CmEndpoint; request: IncomingRequest }> = [];
  readonly protocol = new CmProtocol({
    address: HERE,
    pathMtuCodeMax: 3,
    random: new SeededRandom(1).stream('cm'),
    timing: LINUX_TIMING,
    send: (to, mad) => this.sent.push({ to: to.text, mad: parseMad(mad) as CmMad }),
  });
  readonly note = (event: CmEvent) => {
    this.events.push(event);
  };

  constructor() {
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

describe('a REQ is refused', () => {
  it.each<[string, Partial<MessageFields<'REQ'>>, number]>([
    ['with a service nobody serves', { serviceId: tcpServiceId(7175) }, 8],
    ['without an IP addressing header', { privateData: Uint8Array.of(0, 0x70) }, 8],
    ['for another transport', { transportType: 1 }, 9],
    ['with a path from somewhere else', { primaryLocalGid: STRANGER.gid }, 12],
    ['with a path to somewhere else', { primaryRemoteGid: STRANGER.gid }, 12],
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
    bench.receiveRequest({ primaryLocalGid: STRANGER.gid }, STRANGER);
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

  it('RTU, MRA, REJ, DREP and SIDR_REP: are counted', () => {
    const bench = new Bench();
    for (const name of ['RTU', 'MRA', 'REJ', 'DREP', 'SIDR_REP'] as const) bench.receive(buildMad(name, 0n, {}));
    expect(bench.sent).toEqual([]);
    expect(bench.protocol.counters).toMatchObject({ received: 5, unmatched: 5 });
  });

  it('SIDR_REQ: there are no datagram services', () => {
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
  bench.protocol.confirm(endpoint);
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
  bench.protocol.confirm(endpoint);
  for (let i = 0; i < 3; i++) bench.receive(buildMad('DREQ', 0n, { ...ids, remoteQpn: 0x11 }));
  expect(bench.words).toEqual(['REQ', 'RTU', 'DREP', 'DREP', 'DREP']);
  expect(bench.events.map(({ type }) => type)).toEqual(['CONNECT_RESPONSE', 'DISCONNECTED']);
  bench.protocol.onDeadline(bench.protocol.nextDeadlineNs);
  expect(endpoint.state).toBe('CLOSED');
  expect(bench.protocol.nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
});

it('at most 4096 connections are known; one more is refused', () => {
  const bench = new Bench();
  for (let i = 0; i < 4097; i++) bench.receiveRequest({ localCommId: 1 + i, localQpn: 16 + i });
  expect(bench.requests).toHaveLength(4096);
  expect(bench.words).toEqual(['REJ 3']);
  expect(() => bench.connect()).toThrow(/4096/);
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
