/** SIDR without I/O: both sides of CmProtocol, the other one played by the test, and the packets of stock udaddy. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type CmLimits, LIMITS_DEFAULT } from '../../src/cm/cm-limits.js';
import { CmProtocol } from '../../src/cm/cm-protocol.js';
import { encodeIpPrivateData, UDP_QKEY, udpServiceId } from '../../src/cm/ip-addressing.js';
import { buildMad, type CmMad, encodeMad, type MessageFields, parseMad } from '../../src/cm/messages.js';
import type { ServiceEvent } from '../../src/cm/sidr-requester.js';
import type { ServiceRequest } from '../../src/cm/sidr-responder.js';
import { codeToNs, LINUX_TIMING } from '../../src/cm/timing.js';
import { toHex } from '../../src/core/bytes.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { goldenMads } from './golden-mads.js';

const HERE = IpAddress.parse('192.0.2.1');
const PEER = IpAddress.parse('192.0.2.2');
const STRANGER = IpAddress.parse('192.0.2.3');
const SERVICE = udpServiceId(7174);
const NOTHING = new Uint8Array(0);
const RESEND_NS = codeToNs(LINUX_TIMING.responseTimeout);
const SENDINGS = LINUX_TIMING.maxRetries + 1;

class Bench {
  readonly sent: Array<{ to: string; bytes: Uint8Array; mad: CmMad }> = [];
  readonly events: ServiceEvent[] = [];
  readonly requests: ServiceRequest[] = [];
  readonly protocol: CmProtocol;
  takes = true;

  constructor({ address = HERE, limits = {} }: { address?: IpAddress; limits?: Partial<CmLimits> } = {}) {
    this.protocol = new CmProtocol({
      address,
      pathMtuCodeMax: 5,
      random: new SeededRandom(1).stream('cm'),
      timing: LINUX_TIMING,
      limits: { ...LIMITS_DEFAULT, ...limits },
      anyClaimedAddress: false,
      dscp: 0,
      send: (to, bytes) => this.sent.push({ to: to.text, bytes, mad: parseMad(bytes) as CmMad }),
    });
    this.protocol.listenForDatagrams(SERVICE, (request) => {
      if (this.takes) this.requests.push(request);
      return this.takes;
    });
  }

  ask(remote = PEER): number {
    const question = { remote, serviceId: SERVICE, sourcePort: 50_000, privateData: NOTHING };
    return this.protocol.ask(question, (event) => this.events.push(event), 0);
  }

  receive(mad: Uint8Array, from = PEER, now = 0): void {
    this.protocol.receive(from, mad, now);
  }

  accept(request = this.requests[0], qpn = 55): void {
    this.protocol.answer(request, { status: 0, qpn, qkey: UDP_QKEY, privateData: NOTHING }, 0);
  }

  /** Runs everything that is due up to and including `endNs`. */
  runUntil(endNs: number): void {
    while (this.protocol.nextDeadlineNs <= endNs) this.protocol.onDeadline(this.protocol.nextDeadlineNs);
  }
}

function request(requestId = 77, source = PEER, changes: Partial<MessageFields<'SIDR_REQ'>> = {}): Uint8Array {
  return buildMad('SIDR_REQ', BigInt(requestId), {
    requestId,
    pkey: 0xffff,
    serviceId: SERVICE,
    privateData: encodeIpPrivateData({ source, destination: HERE, sourcePort: 1 }, NOTHING),
    ...changes,
  });
}

function reply(requestId: number, changes: Partial<MessageFields<'SIDR_REP'>> = {}): Uint8Array {
  return buildMad('SIDR_REP', 0n, { requestId, serviceId: SERVICE, qpn: 55, qkey: UDP_QKEY, ...changes });
}

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});

describe.each(['v4', 'v6'])('the packets of stock udaddy, %s', (family) => {
  const [asked, answered] = goldenMads(`cm-sidr-udaddy-${family}.pcapng`);
  const [question, answer] = [asked, answered].map((mad) => parseMad(mad) as CmMad);
  if (question.name !== 'SIDR_REQ' || answer.name !== 'SIDR_REP') throw new Error('not the capture of udaddy');
  const [client, server] = (family === 'v4' ? ['10.77.0.2', '10.77.0.3'] : ['fd77::2', 'fd77::3']).map((text) =>
    IpAddress.parse(text),
  );

  it('our SIDR_REQ is theirs, but for what is random', () => {
    const ours = new Bench({ address: client });
    const sourcePort = new DataView(question.fields.privateData.buffer).getUint16(2);
    ours.protocol.ask({ remote: server, serviceId: SERVICE, sourcePort, privateData: NOTHING }, () => {}, 0);
    const { mad } = ours.sent[0];
    if (mad.name !== 'SIDR_REQ') throw new Error(mad.name);
    const { transactionId } = question;
    const fields = { ...mad.fields, requestId: question.fields.requestId };
    expect(toHex(encodeMad({ ...mad, transactionId, fields }))).toBe(toHex(asked));
  });

  it('our SIDR_REP is theirs to the last byte', () => {
    const ours = new Bench({ address: server });
    ours.receive(asked, client);
    expect(ours.sent).toEqual([]);
    ours.accept(ours.requests[0], answer.fields.qpn);
    expect(ours.sent.map(({ to, bytes }) => `${to} ${toHex(bytes)}`)).toEqual([`${client} ${toHex(answered)}`]);
  });

  it('the addresses in the request must be those of its datagram: the same from elsewhere is refused', () => {
    const ours = new Bench({ address: server });
    ours.receive(asked, IpAddress.parse(family === 'v4' ? '10.77.0.9' : 'fd77::9'));
    expect(ours.requests).toEqual([]);
    expect(ours.sent).toMatchObject([{ mad: { name: 'SIDR_REP', fields: { status: 1 } } }]);
    expect(ours.protocol.counters).toMatchObject({ refused: 1, refusedAddress: 1 });
  });
});

describe('who asks', () => {
  it('gets queue pair, Q_Key and private data of the answer', () => {
    const requestId = bench.ask();
    bench.receive(reply(requestId, { privateData: Uint8Array.of(1, 2) }));
    expect(bench.events).toMatchObject([{ type: 'RESOLVED', fields: { qpn: 55, qkey: UDP_QKEY } }]);
    bench.runUntil(100 * RESEND_NS);
    expect(bench.sent).toHaveLength(1);
  });

  it('asks again, with the same bytes, until there is an answer', () => {
    const requestId = bench.ask();
    bench.runUntil(3 * RESEND_NS);
    bench.receive(reply(requestId), PEER, 3 * RESEND_NS);
    bench.runUntil(100 * RESEND_NS);
    expect(new Set(bench.sent.map(({ bytes }) => toHex(bytes))).size).toBe(1);
    expect(bench.sent).toHaveLength(4);
    expect(bench.protocol.counters.retries).toBe(3);
    expect(bench.events).toHaveLength(1);
  });

  it('gives up when nobody answers, and not before', () => {
    bench.ask();
    bench.runUntil(SENDINGS * RESEND_NS - 1);
    expect([bench.sent.length, bench.events]).toEqual([SENDINGS, []]);
    bench.runUntil(SENDINGS * RESEND_NS);
    expect([bench.sent.length, bench.events]).toEqual([SENDINGS, [{ type: 'UNREACHABLE' }]]);
  });

  it('hears once of a refusal', () => {
    const requestId = bench.ask();
    bench.receive(reply(requestId, { status: 2, qpn: 0 }));
    bench.receive(reply(requestId));
    expect(bench.events).toMatchObject([{ type: 'REFUSED', fields: { status: 2 } }]);
    expect(bench.protocol.counters.unmatched).toBe(1);
  });

  it('takes no answer of another address, and none to a request that it has not made', () => {
    const requestId = bench.ask();
    bench.receive(reply(requestId), STRANGER);
    bench.receive(reply(requestId ^ 1));
    expect([bench.events, bench.protocol.counters.unmatched]).toEqual([[], 2]);
    bench.receive(reply(requestId));
    expect(bench.events).toHaveLength(1);
  });

  it('takes no answer that names a queue pair of management', () => {
    const requestId = bench.ask();
    bench.receive(reply(requestId, { qpn: 1 }));
    expect([bench.events, bench.protocol.counters.malformed]).toEqual([[], 1]);
  });

  it('may cancel: nothing is sent again, and an answer is not heeded', () => {
    const requestId = bench.ask();
    bench.protocol.cancel(requestId);
    bench.receive(reply(requestId));
    bench.runUntil(100 * RESEND_NS);
    expect([bench.sent.length, bench.events]).toEqual([1, []]);
  });

  it('may have as many requests as the limit says', () => {
    bench = new Bench({ limits: { endpoints: 2 } });
    bench.ask();
    bench.ask();
    expect(() => bench.ask()).toThrow(/2 requests for services wait already/);
  });
});

describe('who serves', () => {
  it('answers a request that is repeated with the same bytes, and asks its program once', () => {
    bench.receive(request());
    bench.receive(request());
    expect([bench.requests.length, bench.sent.length]).toEqual([1, 0]);
    bench.accept();
    bench.receive(request());
    expect([bench.requests.length, bench.sent.length]).toEqual([1, 2]);
    expect(toHex(bench.sent[1].bytes)).toBe(toHex(bench.sent[0].bytes));
    expect(bench.protocol.counters.duplicates).toBe(2);
  });

  it('repeats an answer after the service has ended, and refuses what is new', () => {
    bench.receive(request(1));
    bench.accept();
    bench.protocol.unlistenForDatagrams(SERVICE);
    bench.receive(request(1));
    bench.receive(request(2));
    expect(bench.sent.map(({ mad }) => (mad.name === 'SIDR_REP' ? mad.fields.status : mad.name))).toEqual([0, 0, 1]);
  });

  it('takes the same numbers of another peer for another request', () => {
    bench.receive(request());
    bench.receive(request(77, STRANGER), STRANGER);
    expect(bench.requests.map(({ remote }) => remote.text)).toEqual([PEER.text, STRANGER.text]);
  });

  it('says that it has no queue pair when its program has no room', () => {
    bench.takes = false;
    bench.receive(request());
    expect(bench.sent).toMatchObject([{ mad: { fields: { status: 3, requestId: 77 } } }]);
    expect(bench.protocol.serviceRequests).toBe(0);
  });

  it('refuses another version of the IP addressing header', () => {
    const privateData = new Uint8Array(216).fill(0x55);
    bench.receive(request(77, PEER, { privateData }));
    expect(bench.sent).toMatchObject([{ mad: { fields: { status: 1 } } }]);
  });

  it('sends one datagram for each that came, and none unasked', () => {
    for (let id = 1; id <= 20; id++) bench.receive(request(id));
    for (const one of bench.requests) bench.accept(one);
    bench.runUntil(1e15);
    expect(bench.sent).toHaveLength(20);
  });

  it('forgets an answer when nobody can ask for it any more, and not before', () => {
    bench.receive(request());
    bench.accept();
    bench.runUntil(SENDINGS * RESEND_NS - 1);
    expect(bench.protocol.serviceRequests).toBe(1);
    bench.runUntil(SENDINGS * RESEND_NS);
    expect(bench.protocol.serviceRequests).toBe(0);
  });

  it('keeps an undecided request as long as it is repeated', () => {
    bench.receive(request());
    bench.receive(request(), PEER, RESEND_NS);
    bench.runUntil(SENDINGS * RESEND_NS);
    expect(bench.requests[0].isPending).toBe(true);
    bench.runUntil((SENDINGS + 1) * RESEND_NS);
    expect(bench.requests[0].isPending).toBe(false);
    bench.accept();
    expect(bench.sent).toEqual([]);
  });

  it('keeps no more undecided requests of one address, and of all, than its limits say; the oldest makes room', () => {
    bench = new Bench({ limits: { halfOpen: 5, halfOpenPerAddress: 3 } });
    for (let id = 1; id <= 10; id++) bench.receive(request(id));
    expect(bench.requests.map(({ isPending }) => isPending)).toEqual([...Array(7).fill(false), ...Array(3).fill(true)]);
    for (let id = 1; id <= 10; id++) bench.receive(request(id, STRANGER), STRANGER);
    expect(bench.protocol.serviceRequests).toBe(5);
    expect(bench.requests.filter(({ isPending, remote }) => isPending && remote.equals(PEER))).toHaveLength(2);
    expect(bench.protocol.counters.evicted).toBe(15);
  });

  it('keeps no more answers of one address, and of all, than its limits say', () => {
    bench = new Bench({ limits: { endpoints: 5, timewaitPerAddress: 3 } });
    const answered = (from: IpAddress) => {
      for (let id = 1; id <= 10; id++) {
        bench.receive(request(id, from), from);
        bench.accept(bench.requests.at(-1));
      }
    };
    answered(PEER);
    expect(bench.protocol.serviceRequests).toBe(3);
    answered(STRANGER);
    expect(bench.protocol.serviceRequests).toBe(5);
  });

  it('a service ID has one program', () => {
    expect(() => bench.protocol.listenForDatagrams(SERVICE, () => true)).toThrow(
      /somebody serves datagrams on port 7174/,
    );
  });
});
