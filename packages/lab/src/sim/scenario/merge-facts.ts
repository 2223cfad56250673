/**
 * The facts of the parts of a run, put together to those of the whole. A logical process counts nothing for objects
 * that it does not own, so that totals are exact.
 */

import type { Topology } from '../topology.js';
import type { FlowFacts, LogicalProcessFacts, QueueFacts } from './facts.js';
import type { BufferResult } from './result.js';

export function mergeFacts(processes: readonly LogicalProcessFacts[], { switches }: Topology): LogicalProcessFacts {
  const [first, ...others] = processes;
  if (others.length === 0) return first;
  const all = <T>(of: (facts: LogicalProcessFacts) => readonly T[]) => processes.flatMap(of);
  const sum = (of: (facts: LogicalProcessFacts) => number) => processes.reduce((total, facts) => total + of(facts), 0);
  const place = ({ switch: name }: BufferResult) => switches.indexOf(name);
  return {
    nowNs: first.nowNs,
    hashes: all(({ hashes }) => hashes).sort((a, b) => a.place - b.place),
    frames: sum(({ frames }) => frames),
    lostAtHosts: sum(({ lostAtHosts }) => lostAtHosts),
    flows: first.flows.map((flow, i) => others.reduce((merged, { flows }) => mergeFlow(merged, flows[i]), flow)),
    queues: all<QueueFacts>(({ queues }) => queues).sort((a, b) => a.place - b.place),
    buffers: all<BufferResult>(({ buffers }) => buffers).sort((a, b) => place(a) - place(b)),
    timeNs: first.timeNs,
    receivedBps: new Map(all(({ receivedBps }) => [...receivedBps])),
    cnps: first.cnps.map((_, i) => sum(({ cnps }) => cnps[i])),
    pauseFrames: first.pauseFrames.map((_, i) => sum(({ pauseFrames }) => pauseFrames[i])),
  };
}

function mergeFlow(one: FlowFacts, other: FlowFacts): FlowFacts {
  const [a, b] = [one.progress, other.progress];
  return {
    plan: one.plan,
    doneBytes: one.doneBytes + other.doneBytes,
    doneNs: Math.max(one.doneNs, other.doneNs),
    completedNs: one.completedNs ?? other.completedNs,
    failure: one.failure ?? other.failure,
    passiveFailure: one.passiveFailure ?? other.passiveFailure,
    progress: {
      messages: a.messages + b.messages,
      bytes: a.bytes + b.bytes,
      ns: a.ns + b.ns,
      cnps: a.cnps + b.cnps,
      retransmitted: a.retransmitted + b.retransmitted,
    },
    rateBps: one.rateBps ?? other.rateBps,
  };
}
