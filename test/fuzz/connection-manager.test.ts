/**
 * Connection management under hostile datagrams: messages of every kind, with IDs, addresses and GUIDs that an attacker may know, against endpoints in every
 * state, while time passes.
 */

import { describe, expect, it } from 'vitest';
import { LIMITS_DEFAULT } from '../../src/cm/cm-limits.js';
import { CmProtocol } from '../../src/cm/cm-protocol.js';
import type { CmEndpoint } from '../../src/cm/endpoint.js';
import { encodeIpPrivateData, tcpServiceId, udpServiceId } from '../../src/cm/ip-addressing.js';
import { buildMad, type MessageName, parseMad } from '../../src/cm/messages.js';
import type { ServiceRequest } from '../../src/cm/sidr-responder.js';
import { LINUX_TIMING } from '../../src/cm/timing.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { Dice } from '../support/dice.js';

const HERE = IpAddress.parse('192.0.2.1');
const HONEST = IpAddress.parse('192.0.2.2');
const SOURCES = ['192.0.2.2', '192.0.2.3', '192.0.2.4', '0.0.0.0', '224.0.0.1'].map((text) => IpAddress.parse(text));
const NAMES = ['REQ', 'MRA', 'REJ', 'REP', 'RTU', 'DREQ', 'DREP', 'SIDR_REQ', 'SIDR_REP'] as const;
const SERVICE = tcpServiceId(7174);
const DATAGRAM_SERVICE = udpServiceId(7174);
const LIMITS = { ...LIMITS_DEFAULT, endpoints: 24, halfOpen: 12, halfOpenPerAddress: 6, timewaitPerAddress: 4 };
const RESOURCES = {
  qpn: 9,
  startingPsn: 1,
  responderResources: 1,
  initiatorDepth: 1,
  rnrRetryCount: 7,
  privateData: new Uint8Array(0),
};

function run(seed: number, datagrams: number): void {
  const random = new SeededRandom(seed);
  const dice = new Dice(random.stream('attacker'));
  const known: CmEndpoint[] = [];
  /** Requests for the datagram service, and IDs of our own requests. */
  const asked: ServiceRequest[] = [];
  const questions: number[] = [];
  let answers = 0;
  let sent = 0;
  let now = 0;
  const protocol = new CmProtocol({
    address: HERE,
    pathMtuCodeMax: 5,
    random: random.stream('cm'),
    timing: LINUX_TIMING,
    limits: LIMITS,
    anyClaimedAddress: false,
    dscp: 0,
    send: (to, mad) => {
      sent++;
      expect(typeof parseMad(mad)).toBe('object');
      expect(to.isUnicast).toBe(true);
    },
  });
  protocol.listen(SERVICE, (endpoint) => {
    known.push(endpoint);
    return dice.chance(0.9);
  });
  protocol.listenForDatagrams(DATAGRAM_SERVICE, (request) => {
    asked.push(request);
    return dice.chance(0.9);
  });

  function forged(source: IpAddress): Uint8Array {
    const name: MessageName = dice.pick(NAMES);
    const endpoint = known.length > 0 && dice.chance(0.8) ? dice.pick(known.slice(-20)) : undefined;
    const mad = buildMad(name, 5n, {
      localCommId: endpoint !== undefined && dice.chance(0.8) ? endpoint.remoteCommId : dice.int(0, 50),
      remoteCommId: endpoint?.localCommId ?? dice.int(0, 3),
      remoteQpn: endpoint?.localQpn ?? 0,
      localQpn: dice.int(0, 40),
      localCaGuid: BigInt(dice.int(1, 2)),
      serviceId: name === 'SIDR_REQ' ? DATAGRAM_SERVICE : SERVICE,
      requestId: questions.length > 0 && dice.chance(0.5) ? dice.pick(questions.slice(-4)) : dice.int(0, 20),
      status: dice.int(0, 5),
      qpn: dice.int(0, 40),
      message: dice.int(0, 3),
      reason: dice.pick([4, 28, 10]),
      serviceTimeout: dice.int(0, 31),
      localResponseTimeout: dice.int(0, 31),
      primaryLocalAckTimeout: dice.int(0, 31),
      maxCmRetries: 15,
      pathMtu: dice.int(0, 6),
      primaryLocalGid: source.gid,
      primaryRemoteGid: HERE.gid,
      ...((name === 'REQ' || name === 'SIDR_REQ') && {
        privateData: encodeIpPrivateData({ source, destination: HERE, sourcePort: 1 }, new Uint8Array(0)),
      }),
    } as never);
    for (let changes = dice.chance(0.3) ? dice.int(1, 4) : 0; changes > 0; changes--)
      mad[dice.int(0, 255)] = dice.int(0, 255);
    return dice.chance(0.02) ? mad.subarray(0, dice.int(0, 256)) : mad;
  }

  /** What a program may do meanwhile. */
  function act(): void {
    const endpoint = dice.pick(known);
    if (endpoint.state === 'REQ_RCVD')
      dice.chance(0.8) ? protocol.reply(endpoint, RESOURCES, now) : protocol.reject(endpoint, new Uint8Array(0), now);
    else if (endpoint.state === 'REP_RCVD') protocol.confirm(endpoint, now);
    else if (dice.chance(0.3)) protocol.disconnect(endpoint, now);
    else if (dice.chance(0.1)) protocol.abandon(endpoint, now);
  }

  /** ... with datagram services. */
  function resolve(): void {
    if (asked.length > 0 && dice.chance(0.5)) {
      const answer = { status: dice.int(0, 3), qpn: 9, qkey: 1, privateData: new Uint8Array(0) };
      protocol.answer(dice.pick(asked.slice(-20)), answer, now);
    }
    if (dice.chance(0.05) && questions.length < answers + 8) {
      const question = { remote: HONEST, serviceId: 5n, sourcePort: 1, privateData: new Uint8Array(0) };
      questions.push(protocol.ask(question, () => void answers++, now));
    }
  }

  for (let n = 0; n < datagrams; n++) {
    const source = dice.pick(SOURCES);
    protocol.receive(source, forged(source), now);
    if (known.length > 0 && dice.chance(0.5)) act();
    resolve();
    if (dice.chance(0.02) && protocol.liveEndpoints().length < 8) {
      const parameters = { remote: HONEST, serviceId: 5n, sourcePort: 1, pathMtuCode: 3, retryCount: 7, ...RESOURCES };
      known.push(protocol.connect(parameters, () => {}, now));
    }
    now += Math.floor(dice.logUniform(1e3, 1e9));
    protocol.onDeadline(now);
    const halfOpen = protocol.liveEndpoints().filter((endpoint) => endpoint.isHalfOpen);
    expect(halfOpen.length).toBeLessThanOrEqual(LIMITS.halfOpen);
    expect(protocol.liveEndpoints().length).toBeLessThanOrEqual(LIMITS.endpoints);
    expect(protocol.serviceRequests).toBeLessThanOrEqual(LIMITS.halfOpen + LIMITS.endpoints);
    expect(asked.filter(({ isPending }) => isPending).length).toBeLessThanOrEqual(LIMITS.halfOpen);
  }
  expect(protocol.counters).toMatchObject({ received: datagrams, sent });

  // An honest peer who comes now is served.
  const ours = known.length;
  protocol.receive(
    HONEST,
    buildMad('REQ', 7n, {
      localCommId: 0xabcdef,
      serviceId: SERVICE,
      localCaGuid: 0x1234_5678_9abc_def0n,
      localQpn: 0x777,
      localResponseTimeout: 20,
      maxCmRetries: 15,
      pathMtu: 3,
      primaryLocalGid: HONEST.gid,
      primaryRemoteGid: HERE.gid,
      privateData: encodeIpPrivateData({ source: HONEST, destination: HERE, sourcePort: 1 }, new Uint8Array(0)),
    }),
    now,
  );
  expect(known).toHaveLength(ours + 1);
  // ... and everything that nobody asks for any more is over within the limits.
  for (const endpoint of known.filter(({ state }) => state === 'ESTABLISHED')) protocol.disconnect(endpoint, now);
  for (const endpoint of known.filter(({ state }) => state === 'REP_RCVD')) protocol.abandon(endpoint, now);
  const endNs = now + 40 * 60e9;
  while (protocol.nextDeadlineNs < endNs) protocol.onDeadline(protocol.nextDeadlineNs);
  expect(protocol.liveEndpoints()).toEqual([]);
  expect(protocol.serviceRequests).toBe(0);
  expect([questions.length > 0, answers]).toEqual([true, questions.length]);
  expect(asked.length).toBeGreaterThan(0);
}

describe('connection management under hostile datagrams neither throws, nor keeps more than its limits', () => {
  it.each([1, 2, 3, 4])('seed %i', (seed) => run(seed, 3000));
});
