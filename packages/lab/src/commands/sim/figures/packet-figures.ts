import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { SMALL_FLOW_BYTES } from '../../../sim/scenario/scenario-report.js';
import { mean, quantile, Samples } from '../../../sim/statistics.js';
import { compared, type Figure, type FigureRun, type FigureValue } from './figure.js';

interface Point {
  readonly x: number;
  readonly values: readonly FigureValue[];
}

function byX(xLabel: string, yLabels: readonly string[], points: readonly Point[]): FigureRun {
  return {
    values: points.flatMap(({ values }) => values),
    chart: {
      xLabel,
      x: points.map(({ x }) => x),
      panels: yLabels.map((yLabel, i) => ({
        yLabel,
        series: [
          { name: 'ours', values: points.map(({ values }) => values[i].ours) },
          { name: 'published', values: points.map(({ values }) => values[i].published) },
        ],
      })),
    },
  };
}

const meanQueue = ({ summary }: ScenarioResult) => summary.queueMeanBytes / 1000;

const pfcFigure: Figure = {
  name: 'ns3-pfc',
  title: 'Pauses alone hold the queue at the dynamic threshold',
  source: "HPCC's ns-3 simulator: 4 MiB of buffer, alpha 1/8",
  by: 'packets',
  async run(lab) {
    const points: Point[] = [];
    for (const [flows, published] of [
      [2, 833],
      [10, 2339],
      [16, 2792],
    ]) {
      const ours = meanQueue(await lab.packets(`pfc-n${flows}`));
      points.push({ x: flows, values: [compared(`${flows} flows, queue`, 'KB', published, ours)] });
    }
    return byX('flows', ['queue, KB'], points);
  },
};

const timelyFigure: Figure = {
  name: 'ns3-timely',
  title: 'TIMELY with a sample in each round trip: N flows into 10 Gb/s',
  source: "HPCC's ns-3 simulator",
  by: 'packets',
  note: "With the settings of that simulator ('--like hpcc-ns3'): each sample makes a whole step. Samples that count in proportion to time, the default here, leave a queue 4 to 6 KB shorter.",
  async run(lab) {
    const points: Point[] = [];
    for (const [flows, share, jain, queue] of [
      [2, 0.942, 1, 15.7],
      [10, 0.886, 0.998, 18.7],
      [16, 0.818, 0.979, 16.3],
    ]) {
      const result = await lab.packets(`timely-n${flows}`, [], 'hpcc-ns3');
      const value = (what: string, unit: string, published: number, ours: number) =>
        compared(`${flows} flows, ${what}`, unit, published, ours);
      const { efficiency, jain: ours } = result.summary;
      points.push({
        x: flows,
        values: [
          value('share of the link', '', share, efficiency),
          value("Jain's index", '', jain, ours),
          value('queue', 'KB', queue, meanQueue(result)),
        ],
      });
    }
    return byX('flows', ['share of the link', "Jain's index", 'queue, KB'], points);
  },
};

const dcqcnFigure: Figure = {
  name: 'ns3-dcqcn',
  title: 'Ten flows of DCQCN with the parameters of ns3-rdma',
  source: 'the ns-3 simulator of the authors of DCQCN, on the long ramp',
  by: 'packets',
  async run(lab) {
    const result = await lab.packets('dcqcn-n10-4us', [], 'ns3-rdma');
    const { summary, series } = result;
    const highest = (line: readonly number[]) => Math.max(...line);
    const [fullest] = Object.values(series.queueBytes).sort((one, other) => highest(other) - highest(one));
    const step = Math.ceil(series.timeNs.length / 240);
    const isKept = (_value: number, i: number) => i % step === 0;
    const x = series.timeNs.filter(isKept).map((ns) => ns / 1e6);
    const level = (name: string, value: number) => ({ name: `published: ${name}`, values: x.map(() => value) });
    return {
      values: [
        compared('queue, mean', 'KB', 145, summary.queueMeanBytes / 1000),
        compared('queue, p99', 'KB', 390, summary.queueP99Bytes / 1000),
      ],
      chart: {
        xLabel: 'time (ms)',
        x,
        panels: [
          {
            yLabel: 'queue, KB',
            logFrom: 10,
            series: [
              { name: 'ours', values: fullest.filter(isKept).map((bytes) => bytes / 1000) },
              level('mean 145 KB', 145),
              level('p99 390 KB', 390),
            ],
          },
        ],
      },
    };
  },
};

/**
 * Sizes of the flows of figures 13 to 16. The publication does not name its table; but its figure 15 has 454 small
 * flows in a second. This table gives 401 in the mean, and the one of our scenarios 253.
 */
const FCT_SIZES = 'flows[0].sizes=pfabric-web-search';

function smallFlowTimes({ flows }: ScenarioResult): ArrayLike<number> {
  const times = new Samples();
  for (const { completionNs, bytes } of flows) {
    if (completionNs !== null && bytes < SMALL_FLOW_BYTES) times.add(completionNs / 1000);
  }
  return times.sorted();
}

const fctFigure: Figure = {
  name: 'conext16-fct',
  title: 'Completion time of flows below 100 KB under DCQCN, by load',
  source: "CoNEXT'16, the experiment of figures 13 to 16, read off the figures",
  by: 'packets',
  note: 'A completion here includes the last acknowledgement, 3 us. The publication does not name its table of sizes: ours is the one that has as many small flows in a second, about 400. See packages/lab/docs/figure-notes.md.',
  async run(lab) {
    const points: Point[] = [];
    for (const [load, median, p90] of [
      [0.4, 23, 90],
      [0.8, 40, 190],
      [1, 56, 246],
    ]) {
      const times = smallFlowTimes(await lab.packets('fct-dcqcn', [FCT_SIZES, `flows[0].offered=${load * 8}Gbps`]));
      points.push({
        x: load,
        values: [
          compared(`${100 * load} % load, median`, 'us', median, quantile(times, 0.5)),
          compared(`${100 * load} % load, p90`, 'us', p90, quantile(times, 0.9)),
        ],
      });
    }
    return byX('load', ['median, us', 'p90, us'], points);
  },
};

const FCT_CONTROLS = [
  ['fct-dcqcn', 'DCQCN'],
  ['fct-timely', 'TIMELY'],
  ['fct-patched-timely', 'patched TIMELY'],
] as const;

const FCT_SAMPLING = [FCT_SIZES, 'sample=10ms'];

const PUBLISHED_TIMES = {
  DCQCN: { 50: 36, 75: 77, 90: 188, 95: 247, 99: 382, 100: 734 },
  TIMELY: { 50: 123, 75: 3453 },
  'patched TIMELY': { 50: 50, 75: 2029 },
} as const;

const fctDistribution: Figure = {
  name: 'conext16-15',
  title: 'Distribution of completion times of flows below 100 KB at 80 % load',
  source: "CoNEXT'16, figure 15, read off the figure",
  by: 'packets',
  note: 'As in conext16-fct. The tails of both TIMELYs are those of a few bursts, and depend on the seed. See packages/lab/docs/figure-notes.md.',
  async run(lab) {
    const percents = Array.from({ length: 100 }, (_, i) => i + 1);
    const values: FigureValue[] = [];
    const series = [];
    for (const [scenario, name] of FCT_CONTROLS) {
      const times = smallFlowTimes(await lab.packets(scenario, FCT_SAMPLING));
      const published: Readonly<Record<string, number>> = PUBLISHED_TIMES[name];
      for (const [percent, us] of Object.entries(published)) {
        values.push(
          compared(
            `${name}, ${percent === '100' ? 'slowest' : `p${percent}`}`,
            'us',
            us,
            quantile(times, Number(percent) / 100),
          ),
        );
      }
      series.push({ name, values: percents.map((percent) => quantile(times, percent / 100)) });
    }
    return {
      values,
      chart: {
        xLabel: 'percent of the flows',
        x: percents,
        panels: [{ yLabel: 'completed within, us', logFrom: 10, series }],
      },
    };
  },
};

const PUBLISHED_QUEUES = {
  DCQCN: { mean: 46, p90: 84, largest: 136 },
  TIMELY: { median: 646, mean: 2278, largest: 9219 },
  'patched TIMELY': { median: 165, mean: 1816, largest: 9219 },
} as const;

const fctQueue: Figure = {
  name: 'conext16-16',
  title: 'Queue of the link between the switches at 80 % load',
  source: "CoNEXT'16, figure 16, about 100 samples in a second",
  by: 'packets',
  note: 'Our run also has 100 samples in the second, with other arrivals. With both TIMELYs the queue is empty between bursts, so that mean and median depend on the seed.',
  async run(lab) {
    const values: FigureValue[] = [];
    const panels = [];
    let x: readonly number[] = [];
    for (const [scenario, name] of FCT_CONTROLS) {
      const { series } = await lab.packets(scenario, FCT_SAMPLING);
      const samples = new Samples();
      const line = series.queueBytes['s0>s1'].map((bytes) => bytes / 1000);
      for (const kilobytes of line) samples.add(kilobytes);
      const sorted = samples.sorted();
      const ours = {
        mean: mean(sorted),
        median: quantile(sorted, 0.5),
        p90: quantile(sorted, 0.9),
        largest: quantile(sorted, 1),
      };
      const published: Readonly<Record<string, number>> = PUBLISHED_QUEUES[name];
      for (const [what, kilobytes] of Object.entries(published)) {
        values.push(compared(`${name}, ${what}`, 'KB', kilobytes, ours[what as keyof typeof ours]));
      }
      x = series.timeNs.map((ns) => ns / 1e6);
      const publishedMean = PUBLISHED_QUEUES[name].mean;
      panels.push({
        yLabel: `${name}, KB`,
        logFrom: 1,
        series: [
          { name: 'ours', values: line },
          { name: `published: mean ${publishedMean} KB`, values: line.map(() => publishedMean) },
        ],
      });
    }
    return { values, chart: { xLabel: 'time (ms)', x, panels } };
  },
};

export const PACKET_FIGURES: readonly Figure[] = [
  pfcFigure,
  timelyFigure,
  dcqcnFigure,
  fctFigure,
  fctDistribution,
  fctQueue,
];
