/** The facts of the parts of a run, put together to those of the whole. What a part does not own has counted nothing there, so that sums are exact. */

import type { Topology } from '../topology.js';
import type { FlowFacts, PartFacts, QueueFacts } from './facts.js';
import type { BufferResult } from './result.js';

/** Facts of all of the network. */
export function mergeFacts(parts: readonly PartFacts[], { switches }: Topology): PartFacts {
  const [first, ...others] = parts;
  if (others.length === 0) return first;
  const all = <T>(of: (part: PartFacts) => readonly T[]) => parts.flatMap(of);
  const sum = (of: (part: PartFacts) => number) => parts.reduce((total, part) => total + of(part), 0);
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
