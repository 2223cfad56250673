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
import { connectFlow } from './connect-flow.js';

import { type ControlSample, sampleControls } from './control-samples.js';
import type { Flow } from './flow.js';
import { type FlowPlan, planFlows } from './flow-plan.js';
import { hostsOf } from './hosts.js';
import { Probes } from './probes.js';
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
  const flows = await connectFlows({ scenario, topology, network, random, trace, events });
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
    events.run({ untilNs: (scenario.duration * look) / looks });
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

async function connectFlows({ scenario, topology, network, random, trace, events }: RunParts): Promise<Flow[]> {
  const plans = planFlows(scenario, topology, random);
  const memoryBytes = Math.max(...plans.map(({ messageBytes }) => messageBytes));
  const byName = new Map<string, ScenarioHost>();
  const hostOf = async (name: string): Promise<ScenarioHost> => {
    let host = byName.get(name);
    if (host === undefined) {
      host = await ScenarioHost.create(network.station(name), memoryBytes, completionsMax(plans, name), trace);
      const { station } = host;
      station.host.onTurn = () => byName.get(name)!.poll(events.nowNs);
      byName.set(name, host);
    }
    return host;
  };
  const flows: Flow[] = [];
  for (const plan of plans) {
    flows.push(await connectFlow(plan, await hostOf(plan.from), await hostOf(plan.to), scenario.nic));
  }
  return flows;
}

/** More than can be under way at one host at a time. */
function completionsMax(plans: readonly FlowPlan[], host: string): number {
  return plans.reduce(
    (sum, { from, to, outstanding }) => sum + (from === host || to === host ? 2 * outstanding : 0),
    64,
  );
}
