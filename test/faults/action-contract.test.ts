/**
 * What every action of {@link FAULT_ACTIONS} does on every carrier of packets: a port that sends, a port that receives, a switch (IPv4 and
 * IPv6), and a simulated cable. Every one must change what arrives, and be
 * counted; what exactly it does is checked where {@link CHECKS} says so.
 */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import type { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SimLink } from '../../packages/lab/src/sim/sim-link.js';
import { A, B, IPS, roceFrame, SwitchBench } from '../../packages/lab/test/switch/traffic.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { checkIcrc, ICRC_OK, IcrcFlow } from '../../src/packet/icrc.js';
import { isUdpChecksumGoodV6, writeUdpChecksumV6 } from '../../src/packet/udp.js';
import { type RxDatagram, TxBatch } from '../../src/port/datagram.js';
import { FAULT_ACTIONS, newFaultCounters } from '../../src/port/faults/actions.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';
import { FaultyPort } from '../../src/port/faults/faulty-port.js';
import { sendAll } from '../contracts/port-contract.js';
import { MirrorPort } from './mirror-port.js';
import { TestClock } from './test-clock.js';

/** A packet that has arrived. */
interface Arrival {
  readonly psn: number;
  readonly length: number;
  readonly payload: Uint8Array;
  readonly ecn: number;
  readonly dscp: number;
  readonly isIcrcGood: boolean;
}

interface Passage {
  /** In the order in which they came, those of the first instant and those after a second. */
  readonly atOnce: readonly Arrival[];
  readonly later: readonly Arrival[];
  /** What the carrier counted; undefined where it counts no faults. */
  readonly counted: Readonly<Record<string, number>> | undefined;
}

/** Sends packets of PSNs 0 to 5 through a plan, ECT(0) with DSCP 26. */
type Carrier = (plan: FaultPlan) => Passage;

const PACKETS = 6;
const ECN = 2;
const DSCP = 26;
const FLOW = new IcrcFlow(IPS[A], IPS[B], 0xc000, 4791);
const FLOW6 = new IcrcFlow(IpAddress.parse('fd00::1'), IpAddress.parse('fd00::2'), 0xc000, 4791);

/** A frame, and where its UDP payload is. */
function frameOf(psn: number, family: 4 | 6) {
  const bytes = roceFrame(A, B, { psn, ipId: psn, ecn: ECN, dscp: DSCP, family });
  const info = new FrameInfo();
  expect(parseFrame(bytes, 0, bytes.length, info)).toBe(FRAME_OK);
  if (family === 6) writeUdpChecksumV6(bytes, info.ipOffset, info.udpOffset);
  return { bytes, info };
}

/** The UDP payload of a frame. */
function payloadOf(psn: number): Uint8Array {
  const { bytes, info } = frameOf(psn, 4);
  return bytes.slice(info.payloadOffset, info.payloadOffset + info.payloadBytes);
}

function arrival({ bytes, offset, length, ecn, dscp, ipId }: Omit<RxDatagram, AddressField>, flow = FLOW): Arrival {
  const payload = bytes.slice(offset, offset + length);
  return {
    psn: payload[11],
    length,
    payload,
    ecn,
    dscp,
    isIcrcGood: checkIcrc(flow, payload.slice(), 0, length, ipId) === ICRC_OK,
  };
}
type AddressField = 'source' | 'sourcePort' | 'destination' | 'destinationPort';

const port =
  (direction: 'host>wire' | 'wire>host'): Carrier =>
  (plan) => {
    const inner = new MirrorPort('sequential');
    const clock = new TestClock();
    const arrivals: Arrival[] = [];
    const faulty = new FaultyPort(inner, plan, clock);
    faulty.onDatagram = (datagram) => arrivals.push(arrival(datagram));
    const sender = direction === 'host>wire' ? faulty : inner;
    const payloads = Array.from({ length: PACKETS }, (_, psn) => payloadOf(psn));
    sendAll(sender, faulty, payloads, { sourcePort: 0xc000, ecn: ECN, dscp: DSCP });
    const atOnce = arrivals.splice(0);
    clock.goTo(1e9);
    return { atOnce, later: arrivals, counted: undefined };
  };

const frames =
  (family: 4 | 6): Carrier =>
  (faults) => {
    const bench = new SwitchBench({ faults }).introduce();
    const seen = (all: readonly Uint8Array[] = []): Arrival[] =>
      all.map((bytes) => {
        const info = new FrameInfo();
        expect(parseFrame(bytes, 0, bytes.length, info)).toBe(FRAME_OK); // which checks the IPv4 header checksum
        if (family === 6) expect(isUdpChecksumGoodV6(bytes, info.ipOffset, info.udpOffset)).toBe(true);
        const { payloadOffset: offset, payloadBytes: length, ecn, dscp, ipId } = info;
        return arrival({ bytes, offset, length, ecn, dscp, ipId }, family === 6 ? FLOW6 : FLOW);
      });
    const atOnce = Array.from({ length: PACKETS }, (_, psn) =>
      seen(bench.pass(A, frameOf(psn, family).bytes).b),
    ).flat();
    bench.switch.onDeadline(1e9);
    const later = seen(bench.drain(1e9).b);
    expect(bench.switch.bufferedPackets).toBe(0);
    return { atOnce, later, counted: { ...bench.counters('b') } };
  };

const cable: Carrier = (faults) => {
  const events = new EventQueue();
  const arrivals: Arrival[] = [];
  let send: (batch: TxBatch) => number = () => 0;
  const a = { connect: (wire: typeof send) => (send = wire), receive: () => {} };
  const b = { connect: () => {}, receive: (datagram: RxDatagram) => arrivals.push(arrival(datagram)) };
  const link = new SimLink(a as unknown as SimHost, b as unknown as SimHost, {
    events,
    rateBps: Number.POSITIVE_INFINITY,
    delayNs: 0,
    faults,
  });
  const batch = new TxBatch(1, IPS[A]);
  for (let psn = 0; psn < PACKETS; psn++) {
    const payload = payloadOf(psn);
    batch.slab.set(payload, batch.payloadOffset(0));
    batch.lengths[0] = payload.length;
    batch.ipIds[0] = psn;
    batch.ecns[0] = ECN;
    batch.dscps[0] = DSCP;
    send(batch);
  }
  while (events.nextNs === 0) events.step();
  const atOnce = arrivals.splice(0);
  while (events.step()) {}
  return { atOnce, later: arrivals, counted: { ...link.counters['a>b'] } };
};

const CARRIERS: ReadonlyArray<readonly [string, string, Carrier]> = [
  ['a port that sends', 'host>wire', port('host>wire')],
  ['a port that receives', 'wire>host', port('wire>host')],
  ['a switch, IPv4', 'a>b', frames(4)],
  ['a switch, IPv6', 'a>b', frames(6)],
  ['a simulated cable', 'a>b', cable],
];

/** Checks what becomes of a passage of which the packets in `struck` have PSN 2. */
type Check = (passage: Passage, struck: readonly Arrival[]) => void;

const inOrder = ({ atOnce }: Passage) => expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 4, 5]);

/** What the examples of actions do. */
const CHECKS: Readonly<Record<string, Check | undefined>> = {
  drop: (_, struck) => expect(struck).toEqual([]),
  corrupt: ({ atOnce }) => {
    expect(atOnce.filter(({ isIcrcGood }) => !isIcrcGood)).toHaveLength(1);
    expect(atOnce[2]).toMatchObject({ isIcrcGood: false, length: 64, ecn: ECN, dscp: DSCP });
  },
  duplicate: ({ atOnce }, struck) => {
    expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 2, 2, 3, 4, 5]);
    expect(struck[1]).toEqual(struck[0]);
    expect(struck[0].isIcrcGood).toBe(true);
  },
  reorder: ({ atOnce }) => expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 3, 4, 2, 5]),
  delay: ({ atOnce, later }) => {
    expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 3, 4, 5]);
    expect(later.map(({ psn, isIcrcGood }) => [psn, isIcrcGood])).toEqual([[2, true]]);
  },
  rate: ({ atOnce, later }) => {
    expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 3, 4, 5]);
    expect(later.map(({ psn, isIcrcGood }) => [psn, isIcrcGood])).toEqual([[2, true]]);
  },
  mark: (passage, [struck]) => {
    inOrder(passage);
    expect(struck).toMatchObject({ ecn: 3, dscp: DSCP, isIcrcGood: true });
  },
  bleach: (passage, [struck]) => {
    inOrder(passage);
    expect(struck).toMatchObject({ ecn: 0, dscp: DSCP, isIcrcGood: true });
  },
  dscp: (passage, [struck]) => {
    inOrder(passage);
    expect(struck).toMatchObject({ ecn: ECN, dscp: 46, isIcrcGood: true });
  },
  trim: (passage, [struck]) => {
    inOrder(passage);
    expect(struck).toMatchObject({ length: 20, ecn: ECN, dscp: DSCP, isIcrcGood: false });
    expect(struck.payload).toEqual(payloadOf(2).slice(0, 20));
  },
  rewrite: ({ atOnce }) => {
    expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 9, 3, 4, 5]);
    expect(atOnce[2]).toMatchObject({ length: 64, ecn: ECN, dscp: DSCP, isIcrcGood: true });
  },
};

/** Actions that cannot act on a carrier, as `ACTION on CARRIER`, with the reason that docs/faults.md gives. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {};

const isUntouched = ({ payload, psn, ecn, dscp, isIcrcGood }: Arrival): boolean =>
  ecn === ECN && dscp === DSCP && isIcrcGood && psn < PACKETS && payload.length === 64;

describe.each(CARRIERS)('fault actions on %s', (carrierName, direction, carry) => {
  const through = (rule: string) => carry(FaultPlan.parse(rule, new SeededRandom(1)));

  it('without a rule that matches, every packet arrives at once and as it was sent', () => {
    const { atOnce, later, counted } = through('psn=99,drop');
    expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(atOnce.every(isUntouched)).toBe(true);
    expect(later).toEqual([]);
    if (counted !== undefined) expect(counted).toMatchObject(newFaultCounters());
  });

  it.each(FAULT_ACTIONS)('$form', ({ name, example, counter }) => {
    const passage = through(`${direction}:psn=2,${example}`);
    const reason = WITHOUT_EFFECT[`${name} on ${carrierName}`];
    const { atOnce, later, counted } = passage;
    if (reason !== undefined) {
      expect(readFileSync(new URL('../../docs/faults.md', import.meta.url), 'utf8')).toContain(reason);
      expect(atOnce.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 4, 5]);
      expect(atOnce.every(isUntouched)).toBe(true);
      return;
    }
    expect(passage).not.toEqual({ ...through('psn=99,drop'), counted });
    CHECKS[name]?.(
      passage,
      [...atOnce, ...later].filter(({ psn }) => psn === 2),
    );
    // The packets that the rule does not match arrive at once, in order, and as they were sent.
    const others = atOnce.filter(({ psn }) => [0, 1, 3, 4, 5].includes(psn));
    expect(others.map(({ psn }) => psn)).toEqual([0, 1, 3, 4, 5]);
    if (name !== 'corrupt') expect(others.every(isUntouched)).toBe(true);
    if (counted === undefined) return;
    const expected = { ...newFaultCounters(), ...(counter !== undefined && { [counter]: 1 }) };
    expect(counted).toMatchObject(expected);
    expect(counted['tx_dropped_fault'] ?? counted['dropped']).toBe(name === 'drop' ? 1 : 0);
  });
});

it.each(FAULT_ACTIONS)('docs/faults.md describes $form', ({ form, does }) => {
  const page = readFileSync(new URL('../../docs/faults.md', import.meta.url), 'utf8');
  expect(page).toContain(`| \`${form}\` | ${does} |`);
});
