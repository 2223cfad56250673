/** Turns what a run left behind into its result. */

import type { Cable } from '../cable.js';
import type { EventQueue } from '../event-queue.js';
import type { Network } from '../network.js';
import { jainIndex, mean, quantile } from '../statistics.js';
import type { Topology } from '../topology.js';
import { check } from './assertions.js';
import { capacityBps } from './capacity.js';
import type { Flow } from './flow.js';
import type { Probes, QueueProbe } from './probes.js';
import type { BufferResult, CompletionResult, FlowResult, QueueResult, ScenarioResult, Summary } from './result.js';
import type { Scenario } from './schema.js';
import { PACKET_OVERHEAD_BYTES, slowdownsOf, UnloadedTimes } from './slowdown.js';
import type { TraceHash } from './trace-hash.js';

/** As in the flow completion experiments of "ECN or Delay". */
export const SMALL_FLOW_BYTES = 100_000;

/** What had been counted when the warm-up ended. */
export class Baseline {
  readonly #network: Network;
  readonly #flows: readonly Flow[];
  readonly #probes: Probes;
  readonly #progress = new Map<Flow, Progress>();
  readonly #queues = new Map<QueueProbe, QueueCounts>();
  readonly #cableBytes = new Map<string, number>();
  #lostAtHosts = 0;

  constructor(network: Network, flows: readonly Flow[], probes: Probes) {
    this.#network = network;
    this.#flows = flows;
    this.#probes = probes;
  }

  /** Notes where flows, queues, hosts and cables stand now. */
  take(): void {
    for (const flow of this.#flows) this.#progress.set(flow, progressOf(flow));
    for (const probe of this.#probes.queues) this.#queues.set(probe, countsOf(probe));
    this.#lostAtHosts = lostAtHosts(this.#network);
    for (const [name, cable] of this.#network.cables) this.#cableBytes.set(name, bytesOn(cable));
  }

  /** What the flow has completed since, and in which time: from completion to completion. */
  progress(flow: Flow): Progress {
    const now = progressOf(flow);
    const before = this.#progress.get(flow) ?? { ...NO_PROGRESS, ns: flow.plan.startNs };
    return {
      messages: now.messages - before.messages,
      bytes: now.bytes - before.bytes,
      ns: now.ns - before.ns,
      cnps: now.cnps - before.cnps,
      retransmitted: now.retransmitted - before.retransmitted,
    };
  }

  /** What the queue's counters have grown by since {@link take}; all of it if there was none. */
  counts(probe: QueueProbe): QueueCounts {
    const now = countsOf(probe);
    const before = this.#queues.get(probe);
    if (before === undefined) return now;
    return {
      marked: now.marked - before.marked,
      dropped: now.dropped - before.dropped,
      pauses: now.pauses - before.pauses,
      receivedPauses: now.receivedPauses - before.receivedPauses,
    };
  }

  /** Packets that hosts had no room for. */
  get lostAtHosts(): number {
    return lostAtHosts(this.#network) - this.#lostAtHosts;
  }

  /** On the cable, overhead included. */
  cableBytes(name: string): number {
    return bytesOn(this.#network.cables.get(name)!) - (this.#cableBytes.get(name) ?? 0);
  }
}

function bytesOn({ bytes, frames, frameOverheadBytes }: Cable): number {
  return bytes + frames * frameOverheadBytes;
}

function lostAtHosts({ stations }: Network): number {
  return [...stations.values()].reduce((sum, { lostPackets }) => sum + lostPackets, 0);
}

interface Progress {
  readonly messages: number;
  readonly bytes: number;
  readonly ns: number;
  readonly cnps: number;
  readonly retransmitted: number;
}

const NO_PROGRESS: Progress = { messages: 0, bytes: 0, ns: 0, cnps: 0, retransmitted: 0 };

function progressOf({ messages, doneBytes, doneNs, cnps, retransmittedPackets }: Flow): Progress {
  return { messages, bytes: doneBytes, ns: doneNs, cnps, retransmitted: retransmittedPackets };
}

interface QueueCounts {
  readonly marked: number;
  readonly dropped: number;
  readonly pauses: number;
  readonly receivedPauses: number;
}

function countsOf({ node, port }: QueueProbe): QueueCounts {
  return {
    marked: node.markedPackets(port),
    dropped: node.droppedPackets(port),
    pauses: node.pauseFrames(port),
    receivedPauses: node.receivedPauseFrames(port),
  };
}

interface FinishedRun {
  readonly scenario: Scenario;
  readonly topology: Topology;
  readonly network: Network;
  readonly flows: readonly Flow[];
  readonly probes: Probes;
  readonly baseline: Baseline;
  readonly trace: TraceHash;
  readonly events: EventQueue;
  readonly wallSeconds: number;
}

/** The result of a finished run, its assertions checked. */
export function report(run: FinishedRun): ScenarioResult {
  const { scenario, network, probes, trace, events, wallSeconds } = run;
  const flows = run.flows.map((flow) => flowResult(flow, run));
  const queues = probes.queues.map((probe) => queueResult(probe, run));
  // A departure and an arrival for every frame on a cable.
  const packetEvents = 2 * [...network.cables.values()].reduce((sum, { frames }) => sum + frames, 0);
  const result = {
    scenario: scenario.name,
    title: scenario.title,
    seed: scenario.seed,
    traceHash: trace.toString(),
    virtualSeconds: events.nowNs / 1e9,
    wallSeconds,
    packetEvents,
    eventsPerSecond: packetEvents / wallSeconds,
    summary: summaryOf(run, flows, queues),
    flows,
    queues,
    buffers: buffersOf(network, events.nowNs),
    series: probes.series(),
    slowdowns: slowdownsOf(run.flows, new UnloadedTimes(run.topology, scenario.nic.mtu), events.nowNs),
  };
  return { ...result, assertions: scenario.assertions.map((assertion) => check(assertion, result)) };
}

function flowResult(flow: Flow, { baseline, events }: FinishedRun): FlowResult {
  const { id, from, to, startNs } = flow.plan;
  const progress = baseline.progress(flow);
  return {
    id,
    from,
    to,
    startNs,
    goodputBps: goodputOf(flow, progress, events.nowNs),
    bytes: flow.doneBytes,
    retransmittedPackets: progress.retransmitted,
    cnps: progress.cnps,
    completionNs: flow.completedNs === undefined ? null : flow.completedNs - startNs,
    failure: flow.failure ?? null,
  };
}

/** A flow that has stood still for longer than two of its messages take is charged for that time, too. */
function goodputOf(flow: Flow, { messages, bytes, ns }: Progress, nowNs: number): number {
  if (messages === 0) return 0;
  const restNs = flow.completedNs === undefined ? nowNs - flow.doneNs : 0;
  return (bytes * 8e9) / (restNs > (2 * ns) / messages ? ns + restNs : ns);
}

function queueResult(probe: QueueProbe, { baseline, network, scenario, events }: FinishedRun): QueueResult {
  const { marked, dropped, pauses, receivedPauses } = baseline.counts(probe);
  const sorted = probe.samples.sorted();
  const { rateBps } = network.cables.get(probe.name)!;
  const seconds = (events.nowNs - Math.min(scenario.warmup, events.nowNs)) / 1e9;
  return {
    port: probe.name,
    meanBytes: sorted.length === 0 ? 0 : mean(sorted),
    p50Bytes: sorted.length === 0 ? 0 : quantile(sorted, 0.5),
    p99Bytes: sorted.length === 0 ? 0 : quantile(sorted, 0.99),
    maxBytes: sorted.length === 0 ? 0 : sorted[sorted.length - 1],
    markedPackets: marked,
    droppedPackets: dropped,
    pauseFrames: pauses,
    receivedPauseFrames: receivedPauses,
    utilization: seconds > 0 ? (baseline.cableBytes(probe.name) * 8) / (rateBps * seconds) : 0,
  };
}

function buffersOf({ switches }: Network, nowNs: number): BufferResult[] {
  return [...switches].flatMap(([name, { engine }]) => {
    const { pools } = engine.snapshot(nowNs);
    if (pools === undefined) return [];
    const { shared, headroom } = pools;
    return {
      switch: name,
      sharedBytes: shared.sizeBytes,
      sharedMaxBytes: shared.maxBytes,
      headroomBytes: headroom.sizeBytes,
      headroomMaxBytes: headroom.maxBytes,
    };
  });
}

function summaryOf(run: FinishedRun, flows: readonly FlowResult[], queues: readonly QueueResult[]): Summary {
  const { scenario } = run;
  const sum = <T>(list: readonly T[], value: (item: T) => number) =>
    list.reduce((total, item) => total + value(item), 0);
  const endless = flows.filter((_, i) => run.flows[i].plan.bytes === Number.POSITIVE_INFINITY);
  const goodputs = (endless.length > 0 ? endless : flows).map(({ goodputBps }) => goodputBps);
  const goodputBps = endless.length > 0 ? sum(endless, (flow) => flow.goodputBps) : goodputOfAll(run.flows);
  const { mtu } = scenario.nic;
  const counted = endless.length > 0 ? endless : flows;
  const linksBps = capacityBps(
    run.network.cables,
    new Set(counted.map(({ from }) => from)),
    new Set(counted.map(({ to }) => to)),
  );
  const fullest = queues.reduce((a, b) => (b.meanBytes > a.meanBytes ? b : a));
  return {
    goodputBps,
    efficiency: goodputBps / (linksBps * (mtu / (mtu + PACKET_OVERHEAD_BYTES))),
    jain: jainIndex(goodputs),
    minGoodputBps: Math.min(...goodputs),
    maxGoodputBps: Math.max(...goodputs),
    cnps: sum(flows, (flow) => flow.cnps),
    markedPackets: sum(queues, (queue) => queue.markedPackets),
    droppedPackets: sum(queues, (queue) => queue.droppedPackets) + run.baseline.lostAtHosts,
    pauseFrames: sum(queues, (queue) => queue.pauseFrames),
    retransmittedPackets: sum(flows, (flow) => flow.retransmittedPackets),
    failedFlows: flows.filter(({ failure }) => failure !== null).length,
    queueMeanBytes: fullest.meanBytes,
    queueP99Bytes: fullest.p99Bytes,
    completions: completionsOf(run, () => true),
    smallCompletions: completionsOf(run, ({ plan }) => plan.bytes < SMALL_FLOW_BYTES),
  };
}

/** Of flows that end: all their bytes, from the first start to the last completion. */
function goodputOfAll(flows: readonly Flow[]): number {
  const bytes = flows.reduce((sum, { doneBytes }) => sum + doneBytes, 0);
  const startNs = Math.min(...flows.map(({ plan }) => plan.startNs));
  const endNs = Math.max(...flows.map(({ doneNs }) => doneNs));
  return endNs > startNs ? (bytes * 8e9) / (endNs - startNs) : 0;
}

/** A flow that has begun and not ended counts with the time that it has taken so far: left out, the slowest would make percentiles better. */
function completionsOf({ flows, events }: FinishedRun, isCounted: (flow: Flow) => boolean): CompletionResult {
  const begun = flows.filter(
    (flow) => flow.plan.bytes < Number.POSITIVE_INFINITY && flow.plan.startNs <= events.nowNs && isCounted(flow),
  );
  const times = Float64Array.from(begun, ({ plan, completedNs = events.nowNs }) => completedNs - plan.startNs).sort();
  const unfinished = begun.filter(({ completedNs }) => completedNs === undefined).length;
  const at = (p: number) => (times.length === unfinished ? null : quantile(times, p));
  return { count: times.length - unfinished, unfinished, p50Ns: at(0.5), p90Ns: at(0.9), p99Ns: at(0.99) };
}
