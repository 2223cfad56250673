import { jainIndex, quantile } from '../statistics.js';
import type { LinkPlan, Topology } from '../topology.js';
import { check } from './assertions.js';
import { capacityBps } from './capacity.js';
import type { FlowFacts, LogicalProcessFacts } from './facts.js';
import type { CompletionResult, FlowResult, QueueResult, ScenarioResult, Series, Summary } from './result.js';
import type { Scenario } from './schema.js';
import { PACKET_OVERHEAD_BYTES, slowdownsOf, UnloadedTimes } from './slowdown.js';
import { theoreticalEfficiency } from './theoretical-efficiency.js';
import { TraceHash } from './trace-hash.js';
import { warningsOf } from './warnings.js';

export const SMALL_FLOW_BYTES = 100_000;

interface FinishedRun {
  readonly scenario: Scenario;
  readonly topology: Topology;
  readonly facts: LogicalProcessFacts;
  readonly wallSeconds: number;
}

export function report(run: FinishedRun): ScenarioResult {
  const { scenario, topology, facts, wallSeconds } = run;
  const flows = facts.flows.map((flow) => flowResult(flow, facts.nowNs));
  const queues = facts.queues.map(({ result }) => result);
  const unloaded = new UnloadedTimes(topology, scenario.nic.mtu);
  // A departure and an arrival for every frame on a cable.
  const packetEvents = 2 * facts.frames;
  const result = {
    scenario: scenario.name,
    title: scenario.title,
    seed: scenario.seed,
    traceHash: traceHashOf(facts),
    virtualSeconds: facts.nowNs / 1e9,
    wallSeconds,
    packetEvents,
    eventsPerSecond: packetEvents / wallSeconds,
    summary: summaryOf(run, flows, queues, unloaded),
    flows,
    queues,
    buffers: facts.buffers,
    series: seriesOf(facts),
    warnings: warningsOf(scenario, topology),
    slowdowns: slowdownsOf(facts.flows, unloaded, facts.nowNs),
  };
  return { ...result, assertions: scenario.assertions.map((assertion) => check(assertion, result)) };
}

function seriesOf({ timeNs, queues, flows, receivedBps, cnps, pauseFrames }: LogicalProcessFacts): Series {
  const receivers = [...new Set(flows.map(({ plan }) => plan.to))];
  const used = queues.filter(({ series }) => series.some((bytes) => bytes > 0));
  return {
    timeNs,
    queueBytes: Object.fromEntries(used.map(({ result, series }) => [result.port, series])),
    rateBps: flows.map(({ rateBps }) => rateBps!),
    receivedBps: Object.fromEntries(receivers.map((name) => [name, receivedBps.get(name)!])),
    cnps,
    pauseFrames,
  };
}

function traceHashOf({ hashes, nowNs }: LogicalProcessFacts): string {
  const trace = TraceHash.of(hashes.map(({ words }) => words));
  trace.addNumber(nowNs);
  return trace.toString();
}

function flowResult(flow: FlowFacts, nowNs: number): FlowResult {
  const { id, from, to, startNs } = flow.plan;
  const { progress, completedNs, failure, passiveFailure } = flow;
  const passive = passiveFailure === undefined ? null : `${passiveFailure} at the receiver`;
  return {
    id,
    from,
    to,
    startNs,
    goodputBps: goodputOf(flow, nowNs),
    bytes: flow.doneBytes,
    retransmittedPackets: progress.retransmitted,
    cnps: progress.cnps,
    completionNs: completedNs === undefined ? null : completedNs - startNs,
    failure: failure ?? passive,
  };
}

function goodputOf({ completedNs, doneNs, progress: { messages, bytes, ns } }: FlowFacts, nowNs: number): number {
  if (messages === 0) return 0;
  const restNs = completedNs === undefined ? nowNs - doneNs : 0;
  return (bytes * 8e9) / (restNs > (2 * ns) / messages ? ns + restNs : ns);
}

function summaryOf(
  run: FinishedRun,
  flows: readonly FlowResult[],
  queues: readonly QueueResult[],
  unloaded: UnloadedTimes,
): Summary {
  const { scenario, topology, facts } = run;
  const sum = <T>(list: readonly T[], value: (item: T) => number) =>
    list.reduce((total, item) => total + value(item), 0);
  const endless = flows.filter((_, i) => facts.flows[i].plan.bytes === Number.POSITIVE_INFINITY);
  const goodputs = (endless.length > 0 ? endless : flows).map(({ goodputBps }) => goodputBps);
  const goodputBps = endless.length > 0 ? sum(endless, (flow) => flow.goodputBps) : goodputOfAll(facts.flows);
  const { mtu } = scenario.nic;
  const counted = endless.length > 0 ? endless : flows;
  const linksBps = capacityBps(
    ratesOf(topology.links),
    new Set(counted.map(({ from }) => from)),
    new Set(counted.map(({ to }) => to)),
  );
  const fullest = queues.reduce((a, b) => (b.meanBytes > a.meanBytes ? b : a));
  return {
    goodputBps,
    efficiency: goodputBps / (linksBps * (mtu / (mtu + PACKET_OVERHEAD_BYTES))),
    theoreticalEfficiency: theoreticalEfficiency(scenario, facts.flows, topology.links, unloaded) ?? null,
    jain: jainIndex(goodputs),
    minGoodputBps: Math.min(...goodputs),
    maxGoodputBps: Math.max(...goodputs),
    cnps: sum(flows, (flow) => flow.cnps),
    markedPackets: sum(queues, (queue) => queue.markedPackets),
    droppedPackets: sum(queues, (queue) => queue.droppedPackets) + facts.lostAtHosts,
    pauseFrames: sum(queues, (queue) => queue.pauseFrames),
    retransmittedPackets: sum(flows, (flow) => flow.retransmittedPackets),
    failedFlows: flows.filter(({ failure }) => failure !== null).length,
    queueMeanBytes: fullest.meanBytes,
    queueP99Bytes: fullest.p99Bytes,
    completions: completionsOf(facts, () => true),
    smallCompletions: completionsOf(facts, ({ plan }) => plan.bytes < SMALL_FLOW_BYTES),
  };
}

function ratesOf(links: readonly LinkPlan[]): Map<string, { readonly rateBps: number }> {
  return new Map(
    links.flatMap(({ a, b, rateBps }) => [`${a}>${b}`, `${b}>${a}`].map((name) => [name, { rateBps }] as const)),
  );
}

function goodputOfAll(flows: readonly FlowFacts[]): number {
  const bytes = flows.reduce((sum, { doneBytes }) => sum + doneBytes, 0);
  const startNs = Math.min(...flows.map(({ plan }) => plan.startNs));
  const endNs = Math.max(...flows.map(({ doneNs }) => doneNs));
  return endNs > startNs ? (bytes * 8e9) / (endNs - startNs) : 0;
}

/** An unfinished flow counts with its time so far; without it percentiles would look better. */
function completionsOf(
  { flows, nowNs }: LogicalProcessFacts,
  isCounted: (flow: FlowFacts) => boolean,
): CompletionResult {
  const begun = flows.filter(
    (flow) => flow.plan.bytes < Number.POSITIVE_INFINITY && flow.plan.startNs <= nowNs && isCounted(flow),
  );
  const times = Float64Array.from(begun, ({ plan, completedNs = nowNs }) => completedNs - plan.startNs).sort();
  const unfinished = begun.filter(({ completedNs }) => completedNs === undefined).length;
  const at = (p: number) => (times.length === unfinished ? null : quantile(times, p));
  return { count: times.length - unfinished, unfinished, p50Ns: at(0.5), p90Ns: at(0.9), p99Ns: at(0.99) };
}
