/** Looks at queues and flows at fixed intervals of virtual time. It changes nothing: a run with other intervals does the same. */

import type { EventQueue } from '../event-queue.js';
import type { LogicalProcess } from '../logical-process.js';
import type { Network } from '../network.js';
import type { SimSwitch } from '../sim-switch.js';
import { Samples } from '../statistics.js';
import type { Flow } from './flow.js';

/** Queues are sampled so often in a run, or once a microsecond if that is rarer. */
const QUEUE_SAMPLES = 20_000;
const QUEUE_INTERVAL_MIN_NS = 1_000;

/** One egress queue under observation. */
export interface QueueProbe {
  /** `s0>h2` */
  readonly name: string;
  /** The switch it belongs to. */
  readonly node: SimSwitch;
  /** Port number at that switch. */
  readonly port: number;
  /** Since the warm-up. */
  readonly samples: Samples;
  /** Bytes at each sample, of the whole run. */
  readonly series: number[];
  /** It is sampled: its switch belongs to the logical process that is simulated here. */
  readonly isWatched: boolean;
}

/** The samples of a run, taken at fixed intervals of virtual time. */
export class Probes {
  /** Every egress queue of every switch. */
  readonly queues: readonly QueueProbe[];
  readonly #events: EventQueue;
  readonly #flows: readonly Flow[];
  /** Virtual time of each sample of the series. */
  readonly times: number[] = [];
  /** By flow id: payload sent for the first time in each interval, bits/s; undefined where the source is not simulated here. */
  readonly rateBps: ReadonlyArray<number[] | undefined>;
  /** Congestion notifications received in each interval. */
  readonly cnps: number[] = [];
  /** Pauses sent by switches in each interval. */
  readonly pauseFrames: number[] = [];
  readonly #watched: readonly QueueProbe[];
  readonly #sentBefore: Float64Array;
  #cnpsBefore = 0;
  #pausesBefore = 0;

  constructor(events: EventQueue, network: Network, flows: readonly Flow[], logicalProcess: LogicalProcess) {
    this.#events = events;
    this.#flows = flows;
    this.rateBps = flows.map(({ plan }) => (logicalProcess.owns(plan.from) ? [] : undefined));
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

  /** From now to the end of the run. */
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
    this.cnps.push(cnps - this.#cnpsBefore);
    this.#cnpsBefore = cnps;
    const pauses = this.#watched.reduce((sum, { node, port }) => sum + node.pauseFrames(port), 0);
    this.pauseFrames.push(pauses - this.#pausesBefore);
    this.#pausesBefore = pauses;
  }
}
