/**
 * What a run leaves behind as plain data: of all of its network, or of one logical process. They are put together, and
 * then reported.
 */

import type { Cable } from '../cable.js';
import { mean, quantile } from '../statistics.js';
import type { Baseline, HostProgress } from './baseline.js';
import type { Flow } from './flow.js';
import type { FlowPlan } from './flow-plan.js';
import type { Probes, QueueProbe } from './probes.js';
import type { BufferResult, QueueResult } from './result.js';
import type { ScenarioRun } from './scenario-run.js';
import type { HashOfHost } from './trace-hash.js';

export interface FlowFacts {
  readonly plan: Pick<FlowPlan, 'id' | 'from' | 'to' | 'startNs' | 'bytes'>;
  readonly doneBytes: number;
  readonly doneNs: number;
  readonly completedNs: number | undefined;
  readonly failure: string | undefined;
  readonly passiveFailure: string | undefined;
  readonly progress: HostProgress;
  /**
   * Payload sent for the first time in each interval, bits/s; undefined where another logical process has its source.
   */
  readonly rateBps: readonly number[] | undefined;
}

export interface QueueFacts {
  /** Among all queues of the network, from 0. */
  readonly place: number;
  readonly result: QueueResult;
  readonly series: readonly number[];
}

/** What one logical process of a run counted. Of nodes of other logical processes it knows nothing. */
export interface LogicalProcessFacts {
  readonly nowNs: number;
  /**
   * Of each host that has flows, by its place in the topology; one of the whole run where events have no order by the
   * network.
   */
  readonly hashes: readonly HashOfHost[];
  readonly frames: number;
  readonly lostAtHosts: number;
  readonly flows: readonly FlowFacts[];
  readonly queues: readonly QueueFacts[];
  readonly buffers: readonly BufferResult[];
  readonly timeNs: readonly number[];
  /** By receiving host. */
  readonly receivedBps: ReadonlyMap<string, readonly number[]>;
  readonly cnps: readonly number[];
  readonly pauseFrames: readonly number[];
}

export function factsOf(run: ScenarioRun): LogicalProcessFacts {
  const { network, probes, baseline, events, logicalProcess } = run;
  return {
    nowNs: events.nowNs,
    hashes: run.hashes(),
    frames: [...network.cables.values()].reduce((sum, { frames }) => sum + frames, 0),
    lostAtHosts: baseline.lostAtHosts,
    flows: run.flows.map((flow) => flowFacts(flow, baseline, probes)),
    queues: probes.queues.flatMap((probe, place) =>
      probe.isWatched ? [{ place, result: queueResult(probe, run), series: probe.series }] : [],
    ),
    buffers: [...network.switches].flatMap(([name, { engine }]) => {
      const pools = logicalProcess.owns(name) ? engine.snapshot(events.nowNs).pools : undefined;
      if (pools === undefined) return [];
      const { shared, headroom } = pools;
      return {
        switch: name,
        sharedBytes: shared.sizeBytes,
        sharedMaxBytes: shared.maxBytes,
        headroomBytes: headroom.sizeBytes,
        headroomMaxBytes: headroom.maxBytes,
      };
    }),
    timeNs: probes.times,
    receivedBps: probes.receivedBps,
    cnps: probes.cnps,
    pauseFrames: probes.pauseFrames,
  };
}

function flowFacts(flow: Flow, baseline: Baseline, probes: Probes): FlowFacts {
  const { id, from, to, startNs, bytes } = flow.plan;
  const { doneBytes, doneNs, completedNs, failure, passiveFailure } = flow;
  return {
    plan: { id, from, to, startNs, bytes },
    doneBytes,
    doneNs,
    completedNs,
    failure,
    passiveFailure,
    progress: baseline.progress(flow),
    rateBps: probes.rateBps[id],
  };
}

function queueResult(probe: QueueProbe, { baseline, network, scenario, events }: ScenarioRun): QueueResult {
  const { marked, dropped, pauses, receivedPauses } = baseline.counts(probe);
  const sorted = probe.samples.sorted();
  const { rateBps }: Cable = network.cables.get(probe.name)!;
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
