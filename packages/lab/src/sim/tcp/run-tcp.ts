/**
 * Runs the flows of a scenario over TCP instead of RDMA, on the same hosts, cables, switches and seed, in a lossy
 * class.
 */

import { RoceError, SeededRandom } from 'rocev2/internal/core';
import { EventQueue } from '../event-queue.js';
import { Network } from '../network.js';
import { type FlowPlan, planFlows } from '../scenario/flow-plan.js';
import type { Scenario } from '../scenario/schema.js';
import { topologyOf } from '../scenario/topology-of.js';
import { TcpReceiver } from './receiver.js';
import { readSegment, SEGMENT_HEADER_BYTES, type TcpSegment, writeSegment } from './segment.js';
import { TcpSender } from './sender.js';

/** One flow of a run. */
export interface TcpFlowResult {
  /** What was planned. */
  readonly plan: FlowPlan;
  /** From its start until every byte was acknowledged; null if that was not before the end of the run. */
  readonly completionNs: number | null;
  /** Segments that were sent again. */
  readonly retransmissions: number;
  /** Retransmission timeouts. */
  readonly timeouts: number;
}

/** What a run gives. */
export interface TcpResult {
  /** In the order of the plan. */
  readonly flows: readonly TcpFlowResult[];
  /** Frames that found no room in a switch. */
  readonly droppedPackets: number;
}

interface TcpConnection {
  readonly plan: FlowPlan;
  readonly sender: TcpSender;
  readonly receiver: TcpReceiver;
  completedNs: number | undefined;
}

const CONNECTIONS_MAX = 2 ** 16;
/**
 * The shortest retransmission timeout in the data centres of DCTCP (Alizadeh et al., SIGCOMM'10, §3.5); RFC 6298 has 1
 * s.
 */
const RTO_MIN_NS = 10e6;

/**
 * Segments carry as much as RDMA packets: `nic.mtu`. Hosts take no time: interrupts and the kernel are not part of it.
 */
export function runTcp(scenario: Scenario, minimumRtoNs: number = RTO_MIN_NS): TcpResult {
  const random = new SeededRandom(scenario.seed);
  const events = new EventQueue({ isSparse: true });
  const topology = topologyOf(scenario.topology);
  const { pfc: _noPauses, ...switchConfig } = scenario.switch;
  const { mtu } = scenario.nic;
  const extraBytes = scenario.topology.extra;
  const network = new Network({ topology, events, random, pathMtu: mtu, extraBytes, switchConfig });
  const plans = planFlows(scenario, topology, random);
  if (plans.length > CONNECTIONS_MAX || plans.some(({ bytes }) => !Number.isFinite(bytes))) {
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'TCP runs up to 65,536 flows that end', 'give the flows `bytes`');
  }
  const frame = new Uint8Array(SEGMENT_HEADER_BYTES + mtu);
  const cableOut = new Map(
    topology.hosts.map((host) => [host, [...network.cables].find(([name]) => name.startsWith(`${host}>`))![1]]),
  );
  const send = (from: string, to: string, segment: TcpSegment): void => {
    const length = writeSegment(frame, network.station(from), network.station(to), segment);
    cableOut.get(from)!.send(frame, 0, length);
  };
  const connections = plans.map((plan, connection): TcpConnection => {
    const { from, to, bytes } = plan;
    let wakeNs = 0;
    const sender: TcpSender = new TcpSender({
      bytes,
      segmentBytes: mtu,
      minimumRtoNs,
      send: (sequence, length) => send(from, to, { connection, sequence, acknowledged: 0, bytes: length }),
      wakeAt: (timeNs) => {
        wakeNs = timeNs;
        events.at(timeNs, () => {
          if (timeNs !== wakeNs) return;
          wakeNs = Number.NaN;
          sender.onTimer(events.nowNs);
        });
      },
    });
    return { plan, sender, receiver: new TcpReceiver(), completedNs: undefined };
  });
  const take = (host: string, segment: TcpSegment): void => {
    const { connection, sequence, acknowledged, bytes } = segment;
    const at = connections[connection];
    if (host === at.plan.to) {
      at.receiver.onSegment(sequence, bytes);
      send(host, at.plan.from, { connection, sequence: 0, acknowledged: at.receiver.expected, bytes: 0 });
      return;
    }
    if (at.sender.isDone) return;
    at.sender.onAcknowledgement(acknowledged, events.nowNs);
    if (!at.sender.isDone) return;
    at.completedNs = events.nowNs;
    running--;
  };
  let running = connections.length;
  const arrived: TcpSegment = { connection: 0, sequence: 0, acknowledged: 0, bytes: 0 };
  for (const [name, cable] of network.cables) {
    const host = name.slice(name.indexOf('>') + 1);
    if (!network.stations.has(host)) continue;
    cable.connect((bytes, offset, length) => {
      readSegment(bytes, offset, length, arrived);
      take(host, arrived);
    });
  }
  for (const { plan, sender } of connections) events.at(plan.startNs, () => sender.start(events.nowNs));
  events.run({ untilNs: scenario.duration, done: () => running === 0 });
  return {
    flows: connections.map(({ plan, sender, completedNs }) => ({
      plan,
      completionNs: completedNs === undefined ? null : completedNs - plan.startNs,
      retransmissions: sender.retransmissions,
      timeouts: sender.timeouts,
    })),
    droppedPackets: [...network.switches.values()].reduce(
      (sum, node) => sum + node.ports.reduce((dropped, _, port) => dropped + node.droppedPackets(port), 0),
      0,
    ),
  };
}
