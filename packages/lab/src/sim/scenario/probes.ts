/** Samples queues and flows at fixed intervals of virtual time, without changing the run. */

import type { EventQueue } from '../event-queue.js';
import type { LogicalProcess } from '../logical-process.js';
import type { Network } from '../network.js';
import type { SimSwitch } from '../sim-switch.js';
import { Samples } from '../statistics.js';
import type { Flow } from './flow.js';
import type { ScenarioHost } from './scenario-host.js';

/** Samples of queues in a run, or one per microsecond if that is fewer. */
const QUEUE_SAMPLES = 20_000;
const QUEUE_INTERVAL_MIN_NS = 1_000;

export interface QueueProbe {
  readonly name: string;
  readonly node: SimSwitch;
  readonly port: number;
  readonly samples: Samples;
  readonly series: number[];
  /** It is sampled: its switch belongs to the logical process that is simulated here. */
  readonly isWatched: boolean;
}

export class Probes {
  readonly queues: readonly QueueProbe[];
  readonly #events: EventQueue;
  readonly #flows: readonly Flow[];
  readonly times: number[] = [];
  readonly rateBps: ReadonlyArray<number[] | undefined>;
  /** By receiving host, of this logical process. */
  readonly receivedBps: ReadonlyMap<string, number[]>;
  readonly cnps: number[] = [];
  readonly pauseFrames: number[] = [];
  readonly #watched: readonly QueueProbe[];
  readonly #sentBefore: Float64Array;
  readonly #sinks: ReadonlyMap<string, ScenarioHost>;
  readonly #receivedBefore = new Map<string, number>();
  #cnpsBefore = 0;
  #pausesBefore = 0;

  constructor(events: EventQueue, network: Network, flows: readonly Flow[], logicalProcess: LogicalProcess) {
    this.#events = events;
    this.#flows = flows;
    this.rateBps = flows.map(({ plan }) => (logicalProcess.owns(plan.from) ? [] : undefined));
    const owned = flows.filter(({ plan }) => logicalProcess.owns(plan.to));
    this.#sinks = new Map(owned.map(({ plan, sink }) => [plan.to, sink]));
    this.receivedBps = new Map([...this.#sinks.keys()].map((name) => [name, []]));
    this.#sentBefore = new Float64Array(flows.length);
    this.queues = [...network.switches].flatMap(([switchName, node]) =>
      node.ports.map((portName, port) => ({
        name: `${switchName}>${portName}`,
        node,
        port,
        samples: new Samples('whole'),
        series: [],
        isWatched: logicalProcess.owns(switchName),
      })),
    );
    this.#watched = this.queues.filter(({ isWatched }) => isWatched);
  }

  start(durationNs: number, warmupNs: number, seriesNs: number): void {
    const intervalNs = Math.max(QUEUE_INTERVAL_MIN_NS, (durationNs - warmupNs) / QUEUE_SAMPLES);
    const sampleQueues = (): void => {
      for (const { node, port, samples } of this.#watched) samples.add(node.queuedBytes(port));
      this.#events.after(intervalNs, sampleQueues);
    };
    this.#events.at(warmupNs, sampleQueues);
    const extendSeries = (): void => {
      this.#extend(seriesNs);
      this.#events.after(seriesNs, extendSeries);
    };
    this.#events.at(seriesNs, extendSeries);
  }

  #extend(intervalNs: number): void {
    this.times.push(this.#events.nowNs);
    for (const { node, port, series } of this.#watched) series.push(node.queuedBytes(port));
    let cnps = 0;
    for (const [i, flow] of this.#flows.entries()) {
      this.rateBps[i]?.push(((flow.sentBytes - this.#sentBefore[i]) * 8e9) / intervalNs);
      this.#sentBefore[i] = flow.sentBytes;
      cnps += flow.cnps;
    }
    for (const [name, { receivedBytes }] of this.#sinks) {
      const before = this.#receivedBefore.get(name) ?? 0;
      this.receivedBps.get(name)!.push(((receivedBytes - before) * 8e9) / intervalNs);
      this.#receivedBefore.set(name, receivedBytes);
    }
    this.cnps.push(cnps - this.#cnpsBefore);
    this.#cnpsBefore = cnps;
    const pauses = this.#watched.reduce((sum, { node, port }) => sum + node.pauseFrames(port), 0);
    this.pauseFrames.push(pauses - this.#pausesBefore);
    this.#pausesBefore = pauses;
  }
}
