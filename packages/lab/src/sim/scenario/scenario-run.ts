/**
 * A scenario brought to life: its network, its flows, and what watches them. It may be one logical process of a network
 * whose other logical processes are simulated elsewhere: then the whole network is there, so that names, numbers and
 * random streams are the same everywhere, and the nodes of other logical processes do nothing.
 */

import { RoceError, SeededRandom } from 'rocev2/internal/core';
import { FaultPlan } from 'rocev2/internal/faults';
import { ArrivalQueue } from '../arrival-queue.js';
import type { Cable } from '../cable.js';
import { EventQueue } from '../event-queue.js';
import { type LogicalProcess, WHOLE_NETWORK } from '../logical-process.js';
import { Network } from '../network.js';
import type { ReceivePipelineOptions } from '../receive-pipeline.js';
import type { Topology } from '../topology.js';
import { Baseline } from './baseline.js';
import { reserveFlow } from './connect-flow.js';
import { sampleControls } from './control-samples.js';
import type { Flow } from './flow.js';
import { FlowConnections } from './flow-connections.js';
import type { FlowEnds } from './flow-ends.js';
import { type FlowPlan, planFlows } from './flow-plan.js';
import { hostsOf } from './hosts.js';
import { packetLifetimeNs } from './packet-lifetime.js';
import { Probes } from './probes.js';
import type { FrameObserver, WatchedRunOptions } from './run-options.js';
import { ScenarioHost } from './scenario-host.js';
import { schedule } from './scheduled-actions.js';
import type { Scenario } from './schema.js';
import { topologyOf } from './topology-of.js';
import { type HashOfHost, TimedTraceHash, TraceHash } from './trace-hash.js';
import { virtualPayloadOf } from './virtual-payload-of.js';

interface Stage {
  readonly scenario: Scenario;
  readonly topology: Topology;
  readonly network: Network;
  readonly events: EventQueue;
  readonly arrivals: ArrivalQueue | undefined;
  readonly logicalProcess: LogicalProcess;
  readonly traces: ReadonlyMap<string, TraceHash>;
}

export class ScenarioRun {
  readonly scenario: Scenario;
  readonly topology: Topology;
  /** All of its nodes; those of other logical processes do nothing. */
  readonly network: Network;
  readonly events: EventQueue;
  readonly logicalProcess: LogicalProcess;
  readonly flows: readonly Flow[];
  readonly connections: FlowConnections;
  readonly probes: Probes;
  readonly baseline: Baseline;
  readonly #options: WatchedRunOptions;
  readonly #arrivals: ArrivalQueue | undefined;
  readonly #traces: ReadonlyMap<string, TraceHash>;
  readonly #cables: readonly Cable[];
  readonly #allEnd: boolean;
  #ranBeforeNs = 0;

  private constructor(stage: Stage, flows: readonly Flow[], connections: FlowConnections, options: WatchedRunOptions) {
    const { scenario, topology, network, events, arrivals, logicalProcess, traces } = stage;
    this.scenario = scenario;
    this.topology = topology;
    this.network = network;
    this.events = events;
    this.logicalProcess = logicalProcess;
    this.flows = flows;
    this.connections = connections;
    this.probes = new Probes(events, network, flows, logicalProcess);
    this.baseline = new Baseline(network, flows, this.probes);
    this.#options = options;
    this.#arrivals = arrivals;
    this.#traces = traces;
    this.#cables = [...network.cables.values()];
    this.#allEnd = flows.every((flow) => flow.plan.bytes < Number.POSITIVE_INFINITY);
  }

  /**
   * Builds the network and reserves the flows; those of `logicalProcess` are connected unless queue pairs are made per
   * flow. `ends` is what all logical processes of a divided network share. Throws ERR_ROCE_UNKNOWN_NAME for hosts,
   * switches or parameters that do not exist.
   */
  static async prepare(
    scenario: Scenario,
    options: WatchedRunOptions = {},
    logicalProcess: LogicalProcess = WHOLE_NETWORK,
    ends?: FlowEnds,
  ): Promise<ScenarioRun> {
    const random = new SeededRandom(scenario.seed);
    const events = new EventQueue({ isSparse: true });
    const arrivals = scenario.cores === undefined ? undefined : new ArrivalQueue(events);
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
      arrivals,
      logicalProcess,
    });
    if (options.observer !== undefined) observe(options.observer, network, events);
    if (options.station !== undefined) {
      const [name] = hostsOf(options.station.host, topology.hosts, 'the observed host');
      options.station.attach(network.station(name), () => events.nowNs);
    }
    const traces = new Map<string, TraceHash>();
    const stage: Stage = { scenario, topology, network, events, arrivals, logicalProcess, traces };
    const flows = await reserveFlows(stage, random, traces);
    const isPerFlow = scenario.queuePairs === 'per-flow';
    const connections = new FlowConnections({
      flows,
      nic: scenario.nic,
      hasCopies: scenario.faults !== undefined,
      lifetimeNs: isPerFlow ? packetLifetimeNs(scenario, topology) : 0,
      logicalProcess,
      ends: isPerFlow ? ends : undefined,
    });
    if (!isPerFlow) await connections.connectAll();
    return new ScenarioRun(stage, flows, connections, options);
  }

  start(): void {
    const { scenario, network, events, flows, logicalProcess } = this;
    this.probes.start(scenario.duration, scenario.warmup, scenario.sample);
    const { onControl } = this.#options;
    if (onControl !== undefined) sampleControls(events, flows, scenario.sample, onControl);
    schedule(scenario, network, events, logicalProcess);
    for (const flow of flows) this.#scheduleFlow(flow);
    events.at(scenario.warmup, () => this.baseline.take());
  }

  #scheduleFlow(flow: Flow): void {
    const { from, to, startNs } = flow.plan;
    if (this.#arrivals === undefined) {
      this.events.at(startNs, () => flow.start());
      return;
    }
    const isRead = flow.active === flow.sink;
    if (this.logicalProcess.owns(isRead ? from : to)) this.events.at(startNs, () => flow.startPassive());
    if (this.logicalProcess.owns(isRead ? to : from)) this.events.at(startNs, () => flow.startActive());
  }

  /**
   * Makes the queue pairs that are needed up to `untilNs`, and frees those that are no longer needed. Other logical
   * processes have announced theirs since the last step.
   */
  async connectUntil(untilNs: number): Promise<void> {
    if (this.scenario.queuePairs === 'at-start') return;
    await this.connections.freeUnused(this.events.nowNs);
    await this.connections.connectUntil(untilNs);
  }

  runUntil(untilNs: number): void {
    if (this.#arrivals === undefined) this.events.run({ untilNs });
    else {
      this.runBefore(Number.POSITIVE_INFINITY, untilNs);
      this.pass(untilNs);
    }
  }

  get nextNs(): number {
    return this.#arrivals!.nextNs;
  }

  /**
   * Lets happen what happens in this logical process before `beforeNs` and not after `untilNs`. Where the scenario
   * gives cores.
   */
  runBefore(beforeNs: number, untilNs: number): void {
    this.#ranBeforeNs = beforeNs;
    this.#arrivals!.run(beforeNs, untilNs);
  }

  /** Virtual time is `untilNs`; nothing may be due before. */
  pass(untilNs: number): void {
    this.events.pass(untilNs);
  }

  /**
   * A frame from another logical process arrives by the cable of this number. Throws ERR_ROCE_CONFLICT if that time has
   * passed here.
   */
  deliver(cable: number, arrivalNs: number, bytes: Uint8Array, offset: number, length: number): void {
    if (arrivalNs < this.#ranBeforeNs) {
      throw new RoceError(
        'ERR_ROCE_CONFLICT',
        `a frame arrives at ${arrivalNs} ns in a part of the network that has run up to ${this.#ranBeforeNs} ns: the parts have looked too far ahead`,
        'run it with cores 1, and report this',
      );
    }
    this.#cables[cable].deliver(arrivalNs, bytes, offset, length);
  }

  get isOver(): boolean {
    return this.#allEnd && this.flows.every(hasEnded);
  }

  /**
   * Tells other logical processes what they need to know to free queue pairs; all logical processes are at one virtual
   * time.
   */
  tellEnds(): void {
    this.connections.tellEnds();
  }

  /**
   * Sets `ended[id]` for each flow that has ended as far as can be seen in this logical process. Nothing where a flow
   * has no end.
   */
  markEnded(ended: Uint8Array): void {
    if (!this.#allEnd) return;
    for (const flow of this.flows) if (hasEnded(flow)) ended[flow.plan.id] = 1;
  }

  hashes(): readonly HashOfHost[] {
    const { hosts } = this.topology;
    return [...this.#traces]
      .filter(([host]) => this.#arrivals === undefined || this.logicalProcess.owns(host))
      .map(([host, trace]) => ({ place: hosts.indexOf(host), words: trace.words }))
      .sort((a, b) => a.place - b.place);
  }
}

function hasEnded({ completedNs, failure, passiveFailure }: Flow): boolean {
  return completedNs !== undefined || failure !== undefined || passiveFailure !== undefined;
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

async function reserveFlows(stage: Stage, random: SeededRandom, traces: Map<string, TraceHash>): Promise<Flow[]> {
  const { scenario, topology, network, events, arrivals } = stage;
  const plans = planFlows(scenario, topology, random);
  const memoryBytes = plans.reduce((most, plan) => Math.max(most, plan.messageBytes), 0);
  const depths = completionsMax(plans);
  const hosts = new Map<string, ScenarioHost>();
  const followsPackets = scenario.queuePairs === 'per-flow';
  const isOrdered = arrivals !== undefined;
  const ofAll = new TraceHash();
  if (!isOrdered) traces.set('all hosts', ofAll);
  for (const [name, cqDepth] of depths) {
    const station = network.station(name);
    const trace = isOrdered ? new TimedTraceHash(() => events.nowNs) : ofAll;
    if (isOrdered) traces.set(name, trace);
    const tellsEnds = isOrdered;
    const host = await ScenarioHost.create({ station, memoryBytes, cqDepth, trace, followsPackets, tellsEnds });
    station.host.onActivity = () => host.poll(events.nowNs);
    hosts.set(name, host);
  }
  return plans.map((plan) => reserveFlow(plan, hosts.get(plan.from)!, hosts.get(plan.to)!, scenario.nic));
}

function completionsMax(plans: readonly FlowPlan[]): Map<string, number> {
  const depths = new Map<string, number>();
  for (const { from, to, outstanding } of plans) {
    for (const host of [from, to]) depths.set(host, (depths.get(host) ?? 64) + 2 * outstanding);
  }
  return depths;
}
