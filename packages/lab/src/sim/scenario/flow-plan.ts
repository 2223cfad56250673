/** Workloads as lists of single flows, known before the run begins: the same seed gives the same flows. */

import { RoceError, randomInt, randomUnit, type SeededRandom } from 'rocev2/internal/core';
import type { RateControlOptions } from 'rocev2/internal/dcqcn';
import { drawBytes, meanBytes, SIZE_TABLES, type SizeTable } from '../sizes.js';
import type { Topology } from '../topology.js';
import { hostsOf } from './hosts.js';
import { POSTED_AHEAD_MAX } from './posted-ahead.js';
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

interface Ends {
  readonly from: string;
  readonly to: string;
  readonly startNs: number;
  readonly bytes: number;
}
type OfKind<K extends Workload['kind']> = Extract<Workload, { kind: K }>;
type Random = ReturnType<SeededRandom['stream']>;

interface Arrivals<W> {
  readonly workload: W;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly durationNs: number;
  readonly random: Random;
}

export function planFlows(scenario: Scenario, topology: Topology, random: SeededRandom): FlowPlan[] {
  const { jitter } = scenario;
  const late = random.stream('jitter');
  return scenario.flows
    .flatMap((workload, i) =>
      endsOf(workload, `flows[${i}]`, scenario, topology, random).map((ends) => ({ workload, ends })),
    )
    .map(({ workload, ends }, id) => {
      const messageBytes = Math.min(workload.message, ends.bytes);
      return {
        id,
        op: workload.op,
        messageBytes,
        outstanding: workload.outstanding ?? postedAhead(scenario.nic, messageBytes, ends.bytes),
        cc: workload.cc ?? scenario.nic.cc,
        sinkCc: workload.sinkCc ?? workload.cc ?? scenario.nic.cc,
        ...ends,
        ...(jitter > 0 && { startNs: ends.startNs + Math.floor(randomUnit(late) * jitter) }),
      };
    });
}

/**
 * Work requests that hold all of the flow, or more than the NIC may have in flight: then they never keep it waiting.
 */
function postedAhead(nic: Scenario['nic'], messageBytes: number, bytes: number): number {
  const window = Math.ceil((nic.inflight * nic.mtu) / messageBytes) + 1;
  return Math.min(window, Math.ceil(bytes / messageBytes), POSTED_AHEAD_MAX);
}

function endsOf(
  workload: Workload,
  field: string,
  scenario: Scenario,
  topology: Topology,
  random: SeededRandom,
): readonly Ends[] {
  const { hosts } = topology;
  if (workload.kind === 'list') return listed(workload, hosts, field);
  const from = hostsOf(workload.from, hosts, `${field}.from`);
  const to = hostsOf(workload.to, hosts, `${field}.to`);
  const arrivals = { from, to, durationNs: scenario.duration, random: random.stream(field) };
  if (workload.kind === 'incast') return incasts({ workload, ...arrivals }, field);
  const lonely = from.find((source) => to.every((sink) => sink === source));
  if (lonely !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', `${field}: ${lonely} has nobody but itself to send to`);
  }
  if (workload.kind === 'flows') return everyPair(workload, from, to);
  return poisson({ workload, ...arrivals }, workload.offered ?? workload.load! * sendingBps(from, topology));
}

function listed({ flows }: OfKind<'list'>, hosts: readonly string[], field: string): Ends[] {
  return flows.map(({ from, to, bytes, start }, k) => {
    for (const host of [from, to]) hostsOf(host, hosts, `${field}.flows[${k}]`);
    if (from === to) throw new RoceError('ERR_ROCE_CONFLICT', `${field}.flows[${k}]: ${from} sends to itself`);
    return { from, to, bytes, startNs: start };
  });
}

function everyPair(workload: OfKind<'flows'>, from: readonly string[], to: readonly string[]): Ends[] {
  const ends: Ends[] = [];
  for (const source of from) {
    for (const sink of to) {
      if (source === sink) continue;
      for (let k = 0; k < workload.each; k++) {
        const startNs = workload.start + ends.length * workload.stagger;
        ends.push({ from: source, to: sink, startNs, bytes: workload.bytes ?? Number.POSITIVE_INFINITY });
      }
    }
  }
  return ends;
}

function sendingBps(hosts: readonly string[], { links }: Topology): number {
  const senders = new Set(hosts);
  return links.reduce((sum, { a, b, rateBps }) => sum + (senders.has(a) || senders.has(b) ? rateBps : 0), 0);
}

function poisson({ workload, from, to, durationNs, random }: Arrivals<OfKind<'poisson'>>, offeredBps: number): Ends[] {
  const sizes = sizeTable(workload.sizes);
  const meanGapNs = (meanBytes(sizes) * 8e9) / offeredBps;
  const ends: Ends[] = [];
  let startNs = workload.start;
  for (;;) {
    startNs += -Math.log(1 - randomUnit(random)) * meanGapNs;
    if (startNs >= (workload.until ?? durationNs)) return ends;
    const source = from[randomInt(random, 0, from.length - 1)];
    const sinks = to.filter((name) => name !== source);
    const sink = sinks[randomInt(random, 0, sinks.length - 1)];
    ends.push({ from: source, to: sink, startNs, bytes: drawBytes(sizes, random) });
  }
}

function sizeTable(sizes: OfKind<'poisson'>['sizes']): SizeTable {
  return typeof sizes === 'string' ? SIZE_TABLES[sizes] : sizes.map(([bytes, percent]) => [bytes, percent / 100]);
}

function incasts({ workload, from, to, durationNs, random }: Arrivals<OfKind<'incast'>>, field: string): Ends[] {
  const { fanIn, bytes, start, every, until = durationNs } = workload;
  const ends: Ends[] = [];
  for (let startNs = start; startNs < until; startNs += every) {
    const sink = to[randomInt(random, 0, to.length - 1)];
    const sources = from.filter((name) => name !== sink);
    if (sources.length < fanIn) {
      throw new RoceError('ERR_ROCE_CONFLICT', `${field}: fewer than ${fanIn} hosts can send to ${sink}`);
    }
    for (let k = 0; k < fanIn; k++) {
      const [source] = sources.splice(randomInt(random, 0, sources.length - 1), 1);
      ends.push({ from: source, to: sink, startNs, bytes });
    }
  }
  return ends;
}
