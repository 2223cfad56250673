/**
 * Figures 2, 6 and 8 of "ECN or Delay" (CoNEXT'16): the fluid models of DCQCN and TIMELY with packets over them, and
 * the cycles of DCQCN's discrete model.
 */

import type { ChartPanel } from '@rocev2/command/plot';
import {
  DCQCN_LONG_RAMP,
  DCQCN_SIGCOMM15,
  type DcqcnParameters,
  dcqcnConvergence,
  dcqcnStudy,
  type FluidStudy,
  TIMELY_SIGCOMM15,
  timelyStudy,
  togetherAtStart,
} from '../../../fluid/index.js';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { PACKET_OVERHEAD_BYTES } from '../../../sim/scenario/slowdown.js';
import { mean } from '../../../sim/statistics.js';
import { compared, type Figure, type FigureLab, type FigureValue } from './figure.js';

const GB = 1e9;
const MS = 1e6;
const LINK_GB = 40;
const PAYLOAD_BYTES = 1024;
const WIRE_SHARE = (PAYLOAD_BYTES + PACKET_OVERHEAD_BYTES) / PAYLOAD_BYTES;
const SHOWN_NS = 100 * MS;

function packetsOf(flows: number): string[] {
  return [
    `topology.hosts=${flows + 1}`,
    `flows[0].from=h0..h${flows - 1}`,
    `flows[0].to=h${flows}`,
    `duration=${SHOWN_NS}`,
    `warmup=${SHOWN_NS / 2}`,
    `sample=${SHOWN_NS / 200}`,
  ];
}

function meanRates({ series }: ScenarioResult): number[] {
  return series.timeNs.map((_, i) => (mean(series.rateBps.map((rates) => rates[i])) * WIRE_SHARE) / GB);
}

function resampled(times: readonly number[], values: readonly number[], at: readonly number[]): number[] {
  let i = 0;
  return at.map((time) => {
    while (i + 1 < times.length && times[i + 1] <= time) i++;
    return values[i];
  });
}

/** Of both the rate of a flow in Gb/s; `model` at the times of the packets. */
async function modelAndPackets(lab: FigureLab, study: FluidStudy, name: string, set: readonly string[]) {
  const run = await lab.fluid(study, 4000, { durationNs: SHOWN_NS, observeNs: SHOWN_NS / 2 });
  const packets = await lab.packets(name, set);
  const { timeNs, rateBps } = packets.series;
  const settled = timeNs.findIndex((ns) => ns > SHOWN_NS / 2);
  const modelRates = run.trace.rateBps[0].map((bps) => bps / GB);
  return {
    run,
    packets,
    x: timeNs.map((ns) => ns / MS),
    model: resampled(run.trace.timeNs, modelRates, timeNs),
    first: rateBps[0].map((bps) => (bps * WIRE_SHARE) / GB),
    settledMean: (rates: readonly number[]) => mean(rates.slice(settled)),
    level: (name: string, value: number) => ({ name: `published: ${name}`, values: timeNs.map(() => value) }),
  };
}

const overlay: Figure = {
  name: 'conext16-2',
  title: 'DCQCN from line rate on: the fluid model, and packets over it',
  source: "CoNEXT'16, figure 2; the published value is the rate at which model and packets meet there, C/N",
  by: 'packets',
  note: 'Packets of the lines are on the wire, with their headers. The first flow is that of the model, whose flows are all equal; a flow of packets slows down at its own marks.',
  async run(lab) {
    const values: FigureValue[] = [];
    const panels: ChartPanel[] = [];
    let x: readonly number[] = [];
    for (const flows of [2, 10, 20]) {
      const study = dcqcnStudy({ parameters: DCQCN_LONG_RAMP, groups: togetherAtStart(flows), delayNs: 4000 });
      const shown = await modelAndPackets(lab, study, 'dcqcn-n10-4us', packetsOf(flows));
      const { run, packets, first, settledMean } = shown;
      const rates = meanRates(packets);
      const share = LINK_GB / flows;
      values.push(
        compared(`${flows} flows, model`, 'Gb/s', share, run.rateBps[0].mean / GB),
        compared(`${flows} flows, packets`, 'Gb/s', share, settledMean(rates)),
        compared(`${flows} flows, first of them`, 'Gb/s', share, settledMean(first)),
      );
      x = shown.x;
      panels.push({
        yLabel: `${flows} flows, Gb/s each`,
        series: [
          { name: 'model', values: shown.model },
          { name: 'packets, mean of all', values: rates },
          { name: 'packets, first flow', values: first },
          shown.level('C/N', share),
        ],
      });
    }
    return { values, chart: { xLabel: 'time (ms)', x, panels } };
  },
};

const PUBLISHED_BOUNDS: ReadonlyArray<
  readonly [name: string, changes: Partial<DcqcnParameters>, ms: readonly number[]]
> = [
  ['defaults', {}, [96.9, 63.6, 35.9, 23.6, 10.1]],
  ['R_AI 10 Mb/s', { additiveIncreaseBps: 10e6 }, [358.2, 227.9, 121.4, 74.9, 25.9]],
  ['Kmax 1000 KB', { kmaxBytes: 1_000_000 }, [102.7, 68.7, 40.1, 27.1, 12.4]],
];

const cycles: Figure = {
  name: 'conext16-6',
  title: 'Cycles of DCQCN, one cut and then additive steps: how long they are, and how soon flows are equal',
  source: "CoNEXT'16, figure 6 and section 3.3; data of the authors",
  by: 'fluid',
  async run() {
    const flows = [2, 4, 10, 20, 100];
    const steady = flows.map((count) => dcqcnConvergence(DCQCN_SIGCOMM15, count));
    const intervals = [17, 12.5, 8.5, 6.5, 3.8];
    const lengths = flows.map((count, i) =>
      compared(`${count} flows, a cycle`, 'alpha intervals', intervals[i], steady[i].cycleIntervals),
    );
    const bounds = PUBLISHED_BOUNDS.map(([name, changes, published]) => ({
      name,
      values: flows.map((count, i) =>
        compared(
          `${count} flows equal to a tenth, ${name}`,
          'ms',
          published[i],
          dcqcnConvergence({ ...DCQCN_SIGCOMM15, ...changes }, count).boundNs / MS,
        ),
      ),
    }));
    const lines = (values: readonly FigureValue[]) => [
      { name: 'ours', values: values.map(({ ours }) => ours) },
      { name: 'published', values: values.map(({ published }) => published) },
    ];
    return {
      values: [...lengths, ...bounds.flatMap(({ values }) => values)],
      chart: {
        xLabel: 'flows',
        x: flows,
        panels: [
          { yLabel: 'cycle, alpha intervals', series: lines(lengths) },
          ...bounds.map(({ name, values }) => ({ yLabel: `${name}, ms`, series: lines(values) })),
        ],
      },
    };
  },
};

/**
 * Figure 8 as its authors published it, curve by curve (vector graphics; both curves have the rate of one flow, in
 * Gb/s): over the second half the mean of the model, its largest rate, and the mean of the packets.
 */
const PUBLISHED_TIMELY = [
  { flows: 2, mean: 4.487, largest: 5.236, packets: 5.186 },
  { flows: 10, mean: 0.9257, largest: 1.048, packets: 0.9758 },
  { flows: 20, mean: 0.4719, largest: 0.5224, packets: 0.2826 },
];
const TIMELY_LINK_GB = 10;

const timelyOverlay: Figure = {
  name: 'conext16-8',
  title: 'TIMELY from equal shares on: the fluid model, and packets over it',
  source: "CoNEXT'16, figure 8, read off the curves of the authors' graphics",
  by: 'packets',
  note: 'The model agrees. The published packets are those of one flow, with more or less than its share: 5.19 Gb/s of two flows, 0.28 of twenty. Our flows take a sample in each round trip, and share equally. With a sample in each 64 KB, as in the model, they have 4.90, 0.72 and 0.02 Gb/s. A flow that has become slow seldom sends a segment, and its rate rises once a segment.',
  async run(lab) {
    const values: FigureValue[] = [];
    const panels: ChartPanel[] = [];
    let x: readonly number[] = [];
    for (const { flows, mean: modelMean, largest, packets: packetMean } of PUBLISHED_TIMELY) {
      const share = (TIMELY_LINK_GB * GB) / flows;
      const groups = [{ count: flows, startNs: 0, initialRateBps: share }];
      const study = timelyStudy({ parameters: TIMELY_SIGCOMM15, groups, delayNs: 4000 });
      const set = [...packetsOf(flows), `nic.cc.initialRateBps=${share}`];
      const shown = await modelAndPackets(lab, study, 'timely-n10', set);
      const { run, first, settledMean } = shown;
      const value = (what: string, published: number, ours: number) =>
        compared(`${flows} flows, ${what}`, 'Gb/s', published, ours);
      values.push(
        value('model', modelMean, run.rateBps[0].mean / GB),
        value('model, largest', largest, run.rateBps[0].max / GB),
        value('packets, one flow', packetMean, settledMean(first)),
      );
      x = shown.x;
      panels.push({
        yLabel: `${flows} flows, Gb/s each`,
        series: [
          { name: 'model', values: shown.model },
          { name: 'packets, first flow', values: first },
          shown.level('model', modelMean),
          shown.level('packets', packetMean),
        ],
      });
    }
    return { values, chart: { xLabel: 'time (ms)', x, panels } };
  },
};

export const MODEL_FIGURES: readonly Figure[] = [overlay, cycles, timelyOverlay];
