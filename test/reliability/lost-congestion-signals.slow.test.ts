/**
 * Eight senders under DCQCN, one receiver, and the signals of congestion do not come through: marks are bleached on the way, or
 * notifications are lost. Senders then do not slow down, the queue towards the receiver overflows, and what is lost is sent again. With pauses
 * nothing is lost either.
 */

import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { Network } from '../../packages/lab/src/sim/network.js';
import { connectFlow, reserveFlow } from '../../packages/lab/src/sim/scenario/connect-flow.js';
import type { Flow } from '../../packages/lab/src/sim/scenario/flow.js';
import { planFlows } from '../../packages/lab/src/sim/scenario/flow-plan.js';
import { ScenarioHost } from '../../packages/lab/src/sim/scenario/scenario-host.js';
import { parseScenario, type ScenarioFile } from '../../packages/lab/src/sim/scenario/schema.js';
import { topologyOf } from '../../packages/lab/src/sim/scenario/topology-of.js';
import { TraceHash } from '../../packages/lab/src/sim/scenario/trace-hash.js';
import { readU16 } from '../../src/core/bytes.js';
import { SeededRandom } from '../../src/core/random.js';
import { ETHERNET_BYTES, ETHERTYPE_IPV4 } from '../../src/packet/ethernet.js';
import { refreshIpv4Checksum } from '../../src/packet/ipv4.js';
import { ECN_CE, ECN_ECT0 } from '../../src/port/datagram.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';

const SENDERS = 8;
const BYTES = 1 << 20;
const RECEIVER = `h${SENDERS}`;
const RATE_BPS = 10e9;
const ETHERTYPE_OFFSET = 12;

type Switch = NonNullable<ScenarioFile['switch']>;
const ECN = { kind: 'red', kminBytes: 5_000, kmaxBytes: 200_000, pmax: 0.01 } as const;
const TAIL_DROP: Switch = { ecn: ECN, queuePackets: 256, bufferPackets: 512 };
const PAUSES: Switch = { ecn: ECN, pfc: { priorities: [0] }, buffer: { totalBytes: 2 << 20 } };

/** What becomes of the ECN field of frames that reach a host: 0..3 to 0..3. */
type Bleach = (ecn: number) => number;

interface Outcome {
  readonly flows: readonly Flow[];
  /** How much longer the last one took than the link needs. */
  readonly slowdown: number;
  readonly cnps: number;
  /** Packets sent again, per packet that was needed. */
  readonly resent: number;
}

async function run(switchConfig: Switch, faults: string | undefined, bleach: Bleach): Promise<Outcome> {
  const scenario = parseScenario({
    name: 'signals',
    duration: '4s',
    topology: { kind: 'star', hosts: SENDERS + 1, rate: '10Gbps' },
    nic: { cc: 'dcqcn', timeout: 9 },
    switch: switchConfig,
    flows: [{ kind: 'flows', from: `h0..h${SENDERS - 1}`, to: RECEIVER, bytes: BYTES }],
  });
  const random = new SeededRandom(scenario.seed);
  const events = new EventQueue();
  const topology = topologyOf(scenario.topology);
  const network = new Network({
    topology,
    events,
    random,
    pathMtu: scenario.nic.mtu,
    switchConfig: scenario.switch,
    faultsOf: () => (faults === undefined ? undefined : FaultPlan.parse(faults, random)),
  });
  for (const [name, station] of network.stations) {
    network.cables.get(`s0>${name}`)!.connectOwner((slot) => {
      const bytes = network.pool.bytes(slot);
      if (readU16(bytes, ETHERTYPE_OFFSET) === ETHERTYPE_IPV4) {
        bytes[ETHERNET_BYTES + 1] = (bytes[ETHERNET_BYTES + 1] & ~3) | bleach(bytes[ETHERNET_BYTES + 1] & 3);
        refreshIpv4Checksum(bytes, ETHERNET_BYTES);
      }
      station.receive(slot);
    });
  }
  const hosts = new Map<string, ScenarioHost>();
  for (const [name, station] of network.stations) {
    const trace = new TraceHash();
    const host = await ScenarioHost.create({
      station,
      memoryBytes: 1 << 16,
      cqDepth: 1024,
      trace,
      followsPackets: false,
    });
    station.host.onActivity = () => host.poll(events.nowNs);
    hosts.set(name, host);
  }
  const flows = planFlows(scenario, topology, random).map((plan) =>
    reserveFlow(plan, hosts.get(plan.from)!, hosts.get(plan.to)!, scenario.nic),
  );
  for (const flow of flows) await connectFlow(flow, scenario.nic);
  for (const flow of flows) flow.start();
  const isOver = () => flows.every(({ completedNs, failure }) => completedNs !== undefined || failure !== undefined);
  events.run({ untilNs: scenario.duration, done: isOver });
  const lastNs = Math.max(...flows.map(({ completedNs }) => completedNs ?? Number.POSITIVE_INFINITY));
  const sum = (of: (flow: Flow) => number) => flows.reduce((total, flow) => total + of(flow), 0);
  return {
    flows,
    slowdown: lastNs / ((SENDERS * BYTES * 8e9) / RATE_BPS),
    cnps: sum(({ cnps }) => cnps),
    resent: sum(({ retransmittedPackets }) => retransmittedPackets) / ((SENDERS * BYTES) / scenario.nic.mtu),
  };
}

const keep: Bleach = (ecn) => ecn;
const bleached: Bleach = (ecn) => (ecn === ECN_CE ? ECN_ECT0 : ecn);

async function measured(name: string, ...[queue, faults, bleach]: Parameters<typeof run>): Promise<Outcome> {
  const outcome = await run(queue, faults, bleach);
  const { slowdown, cnps, resent, flows } = outcome;
  console.log(
    `${name}: ${slowdown.toFixed(2)} times the least possible, ${cnps} CNPs, ${(100 * resent).toFixed(0)} % sent again`,
  );
  expect(flows.map(({ doneBytes, failure }) => [doneBytes, failure])).toEqual(Array(SENDERS).fill([BYTES, undefined]));
  return outcome;
}

describe.each([
  ['marks bleached', undefined, bleached],
  ['every notification lost', 'opcode=CNP', keep],
] as const)('%s', (name, faults, bleach) => {
  it('with a queue of 256 packets: every transfer ends, in less than four times the least possible', async () => {
    const { slowdown, cnps } = await measured(`${name}, tail drop`, TAIL_DROP, faults, bleach);
    expect(cnps).toBe(0);
    expect(slowdown).toBeLessThan(4);
  });

  it('with pauses: nothing is sent twice', async () => {
    const { slowdown, cnps, resent } = await measured(`${name}, pauses`, PAUSES, faults, bleach);
    expect([cnps, resent]).toEqual([0, 0]);
    expect(slowdown).toBeLessThan(1.3);
  });
});

it('where signals arrive, they save most of what would be sent again', async () => {
  const without = await measured('no signals, tail drop', TAIL_DROP, 'opcode=CNP', keep);
  const withThem = await measured('signals, tail drop', TAIL_DROP, undefined, keep);
  expect(withThem.cnps).toBeGreaterThan(50);
  expect(withThem.resent).toBeLessThan(without.resent / 2);
});
