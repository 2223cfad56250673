/** Workloads as lists of single flows, known before the run begins: the same seed gives the same flows. */

import { RoceError } from '../../core/errors.js';
import { randomInt, randomUnit, type SeededRandom } from '../../core/random.js';
import type { RateControlOptions } from '../../dcqcn/schemes.js';
import { drawBytes, meanBytes, WEB_SEARCH } from '../sizes.js';
import { hostsOf } from './hosts.js';
import type { Scenario, Workload } from './schema.js';

/** One flow: a queue pair at each end and messages of one kind between them. */
export interface FlowPlan {
  /** From 0; the order of flows in results. */
  readonly id: number;
  /** Host that has the data. */
  readonly from: string;
  /** Host the data goes to. */
  readonly to: string;
  /** Who acts: the source writes or sends, or the sink reads. */
  readonly op: 'write' | 'send' | 'read';
  /** Payload of one message. */
  readonly messageBytes: number;
  /** Work requests that are kept posted. */
  readonly outstanding: number;
  /** Virtual time of the first message. */
  readonly startNs: number;
  /** Infinity: never ends. */
  readonly bytes: number;
  /** Rate control of the source. */
  readonly cc: RateControlOptions;
  /** Of the sink, as far as it sends. */
  readonly sinkCc: RateControlOptions;
}

/** Throws ERR_ROCE_UNKNOWN_NAME for hosts that do not exist, ERR_ROCE_CONFLICT for one that would send to itself alone. */
export function planFlows(scenario: Scenario, hosts: readonly string[], random: SeededRandom): FlowPlan[] {
  const plans: FlowPlan[] = [];
  for (const [i, workload] of scenario.flows.entries()) {
    const from = hostsOf(workload.from, hosts, `flows[${i}].from`);
    const to = hostsOf(workload.to, hosts, `flows[${i}].to`);
    const lonely = from.find((source) => to.every((sink) => sink === source));
    if (lonely !== undefined) {
      throw new RoceError('ERR_ROCE_CONFLICT', `flows[${i}]: ${lonely} has nobody but itself to send to`);
    }
    const add = (ends: { from: string; to: string; startNs: number; bytes: number }) =>
      plans.push({
        id: plans.length,
        op: workload.op,
        messageBytes: Math.min(workload.message, ends.bytes),
        outstanding: workload.outstanding,
        cc: workload.cc ?? scenario.nic.cc,
        sinkCc: workload.sinkCc ?? workload.cc ?? scenario.nic.cc,
        ...ends,
      });
    if (workload.kind === 'flows') addEveryPair(workload, from, to, add);
    else addPoisson({ workload, from, to, durationNs: scenario.duration, random: random.stream(`flows[${i}]`) }, add);
  }
  return plans;
}

type Add = (ends: { from: string; to: string; startNs: number; bytes: number }) => void;
type Every = Extract<Workload, { kind: 'flows' }>;
type Poisson = Extract<Workload, { kind: 'poisson' }>;

function addEveryPair(workload: Every, from: readonly string[], to: readonly string[], add: Add): void {
  let startNs = workload.start;
  for (const source of from) {
    for (const sink of to) {
      if (source === sink) continue;
      for (let k = 0; k < workload.each; k++) {
        add({ from: source, to: sink, startNs, bytes: workload.bytes ?? Number.POSITIVE_INFINITY });
        startNs += workload.stagger;
      }
    }
  }
}

interface PoissonArrivals {
  readonly workload: Poisson;
  /** Hosts by name. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  /** Of the scenario. */
  readonly durationNs: number;
  readonly random: ReturnType<SeededRandom['stream']>;
}

/** Each flow between two hosts drawn anew; gaps are exponential. */
function addPoisson({ workload, from, to, durationNs, random }: PoissonArrivals, add: Add): void {
  const meanGapNs = (meanBytes(WEB_SEARCH) * 8e9) / workload.offered;
  let startNs = workload.start;
  for (;;) {
    startNs += -Math.log(1 - randomUnit(random)) * meanGapNs;
    if (startNs >= (workload.until ?? durationNs)) return;
    const source = from[randomInt(random, 0, from.length - 1)];
    const sinks = to.filter((name) => name !== source);
    add({
      from: source,
      to: sinks[randomInt(random, 0, sinks.length - 1)],
      startNs,
      bytes: drawBytes(WEB_SEARCH, random),
    });
  }
}
