/**
 * Runs a scenario: builds the network, connects the flows, lets virtual time pass, and reports. The same scenario and seed give the same
 * trace.
 */

import { SeededRandom } from '../../core/random.js';
import { NS_PER_S } from '../../core/units.js';
import { FaultPlan } from '../../faults/fault-plan.js';
import { EventQueue } from '../event-queue.js';
import { Network } from '../network.js';
import type { ReceivePipelineOptions } from '../receive-pipeline.js';
import type { SimStation } from '../sim-station.js';
import type { Topology } from '../topology.js';
import { reserveFlow } from './connect-flow.js';
import { type ControlSample, sampleControls } from './control-samples.js';
import type { Flow } from './flow.js';
import { FlowConnections } from './flow-connections.js';
import { type FlowPlan, planFlows } from './flow-plan.js';
import { hostsOf } from './hosts.js';
import { Probes } from './probes.js';
import { quietNsOf } from './quiet-time.js';
import { Baseline, report } from './report.js';
import type { ScenarioResult } from './result.js';
import { ScenarioHost } from './scenario-host.js';
import { schedule } from './scheduled-actions.js';
import type { Scenario } from './schema.js';
import { topologyOf } from './topology-of.js';
import { TraceHash } from './trace-hash.js';
import { virtualPayloadOf } from './virtual-payload-of.js';

/** Who looks at the cable of a host. */
export interface FrameObserver {
  /** Name of the host. */
  readonly host: string;
  /** A frame leaves or arrives at this virtual time. */
  onFrame(timeNs: number, bytes: Uint8Array): void;
}

/** Who stands between the NIC of a host and its cable. */
export interface StationObserver {
  /** Name of the host. */
  readonly host: string;
  /** Called once, before anything is sent. `nowNs` is virtual time. */
  attach(station: SimStation, nowNs: () => number): void;
}

/** How a run talks to whoever waits for it. */
export interface RunOptions {
  /** Called now and then with the share of virtual time that has passed; returning false ends the run there. */
  readonly onProgress?: (done: number) => boolean | Promise<boolean>;
  /** Sees every frame on the cable of one host, from the Ethernet header on, without check sequence. The bytes are valid during the call. */
  readonly observer?: FrameObserver;
  /** Called every `sample` of the scenario for each flow that has begun and not ended, with what its rate control allows. Changes nothing in the run. */
  readonly onControl?: (sample: ControlSample) => void;
  /** Real time in nanoseconds, to say how fast the run was. Default: it took no time. */
  readonly realNowNs?: () => number;
}

/** A run that a program of this package watches more closely. */
export interface WatchedRunOptions extends RunOptions {
  /** Attached to the station of one host. */
  readonly station?: StationObserver;
  /** Called before each step with the number of flows that have queue pairs, and virtual time. */
  readonly onConnections?: (count: number, nowNs: number) => void;
}

const PROGRESS_STEPS = 200;
/** How often the caller is asked in a step: with many flows the first step takes seconds. */
const LOOKS_PER_STEP = 16;

/**
 * The result of a scenario. The same scenario and seed give the same packets. Throws ERR_ROCE_UNKNOWN_NAME for hosts, switches or parameters that do not exist.
 */
export async function runScenario(scenario: Scenario, options: WatchedRunOptions = {}): Promise<ScenarioResult> {
  const { realNowNs = () => 0 } = options;
  const random = new SeededRandom(scenario.seed);
  const events = new EventQueue();
  const trace = new TraceHash();
  const topology = topologyOf(scenario.topology);
  const faultsOf = (name: string) =>
    scenario.faults === undefined
      ? undefined
      : FaultPlan.parse(scenario.faults, new SeededRandom(scenario.seed + topology.switches.indexOf(name)));
  const network = new Network({
    topology,
    events,
    random,
    pathMtu: scenario.nic.mtu,
    extraBytes: scenario.topology.extra,
    switchConfig: scenario.switch,
    pipelineOf: pipelinesOf(scenario, topology.hosts),
    faultsOf,
    virtualPayload: virtualPayloadOf(scenario, options),
  });
  if (options.observer !== undefined) observe(options.observer, network, events);
  if (options.station !== undefined) {
    const [name] = hostsOf(options.station.host, topology.hosts, 'the observed host');
    options.station.attach(network.station(name), () => events.nowNs);
  }
  const flows = await reserveFlows({ scenario, topology, network, random, trace, events });
  const isPerFlow = scenario.queuePairs === 'per-flow';
  const connections = new FlowConnections({
    flows,
    nic: scenario.nic,
    hasCopies: scenario.faults !== undefined,
    quietNs: isPerFlow ? quietNsOf(scenario, topology) : 0,
  });
  if (!isPerFlow) await connections.connectAll();
  const probes = new Probes(events, network, flows);
  const startedNs = realNowNs();
  probes.start(scenario.duration, scenario.warmup, scenario.sample);
  if (options.onControl !== undefined) sampleControls(events, flows, scenario.sample, options.onControl);
  schedule(scenario, network, events);
  for (const flow of flows) events.at(flow.plan.startNs, () => flow.start());
  const baseline = new Baseline(network, flows, probes);
  events.at(scenario.warmup, () => baseline.take());
  const allEnd = flows.every((flow) => flow.plan.bytes < Number.POSITIVE_INFINITY);
  const isOver = () => allEnd && flows.every((flow) => flow.completedNs !== undefined || flow.failure !== undefined);
  const looks = PROGRESS_STEPS * LOOKS_PER_STEP;
  for (let look = 1; look <= looks; look++) {
    const untilNs = (scenario.duration * look) / looks;
    if (isPerFlow) {
      await connections.freeUnused(events.nowNs);
      await connections.connectUntil(untilNs);
    }
    options.onConnections?.(connections.count, events.nowNs);
    events.run({ untilNs });
    if ((await options.onProgress?.(look / looks)) === false) break;
    // Where it ends is part of the result: at the end of a step, however often the caller is asked.
    if (look % LOOKS_PER_STEP === 0 && isOver()) break;
  }
  trace.addNumber(events.nowNs);
  return report({
    scenario,
    topology,
    network,
    flows,
    probes,
    baseline,
    trace,
    events,
    wallSeconds: (realNowNs() - startedNs) / NS_PER_S,
  });
}

function observe({ host, onFrame }: FrameObserver, network: Network, events: EventQueue): void {
  const [name] = hostsOf(host, [...network.stations.keys()], 'the observed host');
  network.station(name).onFrame = (bytes, offset, length) =>
    onFrame(events.nowNs, bytes.subarray(offset, offset + length));
}

function pipelinesOf({ pipelines }: Scenario, hosts: readonly string[]) {
  const byHost = new Map<string, ReceivePipelineOptions>();
  for (const [i, { hosts: selection, contexts, hit, miss, buffer, priority }] of pipelines.entries()) {
    const options = { contexts, hitNs: hit, missNs: miss, bufferBytes: buffer, priority };
    for (const host of hostsOf(selection, hosts, `pipelines[${i}].hosts`)) byHost.set(host, options);
  }
  return (host: string) => byHost.get(host);
}

/** What one run is made of. */
interface RunParts {
  readonly scenario: Scenario;
  readonly topology: Topology;
  readonly network: Network;
  readonly random: SeededRandom;
  readonly trace: TraceHash;
  readonly events: EventQueue;
}

/** All flows, with the hosts that they need. */
async function reserveFlows({ scenario, topology, network, random, trace, events }: RunParts): Promise<Flow[]> {
  const plans = planFlows(scenario, topology, random);
  const memoryBytes = plans.reduce((most, plan) => Math.max(most, plan.messageBytes), 0);
  const depths = completionsMax(plans);
  const hosts = new Map<string, ScenarioHost>();
  for (const [name, cqDepth] of depths) {
    const station = network.station(name);
    const followsPackets = scenario.queuePairs === 'per-flow';
    const host = await ScenarioHost.create({ station, memoryBytes, cqDepth, trace, followsPackets });
    station.host.onTurn = () => host.poll(events.nowNs);
    hosts.set(name, host);
  }
  return plans.map((plan) => reserveFlow(plan, hosts.get(plan.from)!, hosts.get(plan.to)!, scenario.nic));
}

/** For each host more than can be under way there at a time. */
function completionsMax(plans: readonly FlowPlan[]): Map<string, number> {
  const depths = new Map<string, number>();
  for (const { from, to, outstanding } of plans) {
    for (const host of [from, to]) depths.set(host, (depths.get(host) ?? 64) + 2 * outstanding);
  }
  return depths;
}
