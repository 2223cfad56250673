/** Figures by packets, beside the values of ns-3 simulators and of publications. */

import type { ScenarioResult } from '../../../sim/scenario/result.js';
import type { Figure, FigureRun, FigureValue } from './figure.js';

interface Point {
  /** Flows, or load. */
  readonly x: number;
  readonly values: readonly FigureValue[];
}

/** A panel for each kind of value: ours and the published ones by x. */
function byX(figure: Figure, xLabel: string, yLabels: readonly string[], points: readonly Point[]): FigureRun {
  return {
    values: points.flatMap(({ values }) => values),
    chart: {
      title: figure.title,
      subtitle: figure.source,
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
      points.push({ x: flows, values: [{ what: `${flows} flows, queue`, unit: 'KB', published, ours }] });
    }
    return byX(this, 'flows', ['queue, KB'], points);
  },
};

const timelyFigure: Figure = {
  name: 'ns3-timely',
  title: 'TIMELY with a sample in each round trip: N flows into 10 Gb/s',
  source: "HPCC's ns-3 simulator",
  by: 'packets',
  note: 'Packets there have 48 bytes of headers, here 82; the mean of a queue this short depends on it.',
  async run(lab) {
    const points: Point[] = [];
    for (const [flows, share, jain, queue] of [
      [2, 0.942, 1, 15.7],
      [10, 0.886, 0.998, 18.7],
      [16, 0.818, 0.979, 16.3],
    ]) {
      const result = await lab.packets(`timely-n${flows}`);
      const value = (what: string, unit: string, published: number, ours: number) => ({
        what: `${flows} flows, ${what}`,
        unit,
        published,
        ours,
      });
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
    return byX(this, 'flows', ['share of the link', "Jain's index", 'queue, KB'], points);
  },
};

const dcqcnFigure: Figure = {
  name: 'ns3-dcqcn',
  title: 'Ten flows of DCQCN with the parameters of ns3-rdma',
  source: 'the ns-3 simulator of the authors of DCQCN, on the long ramp',
  by: 'packets',
  async run(lab) {
    const result = await lab.packets('dcqcn-n10-4us', ['nic.cc.preset=ns3-rdma']);
    const { summary, series } = result;
    const highest = (line: readonly number[]) => Math.max(...line);
    const [fullest] = Object.values(series.queueBytes).sort((one, other) => highest(other) - highest(one));
    // Thinned: the series has more points than a line on a page.
    const step = Math.ceil(series.timeNs.length / 240);
    const isKept = (_value: number, i: number) => i % step === 0;
    const x = series.timeNs.filter(isKept).map((ns) => ns / 1e6);
    const level = (name: string, value: number) => ({ name: `published: ${name}`, values: x.map(() => value) });
    return {
      values: [
        { what: 'queue, mean', unit: 'KB', published: 145, ours: summary.queueMeanBytes / 1000 },
        { what: 'queue, p99', unit: 'KB', published: 390, ours: summary.queueP99Bytes / 1000 },
      ],
      chart: {
        title: this.title,
        subtitle: this.source,
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

const fctFigure: Figure = {
  name: 'conext16-fct',
  title: 'Completion time of flows below 100 KB under DCQCN, by load',
  source: "CoNEXT'16, the experiment of figures 13 to 16, read off the figures",
  by: 'packets',
  note: 'A completion here includes the last acknowledgement, and the publication does not name its table of sizes. One second has only 261 small flows: the tails are uncertain.',
  async run(lab) {
    const points: Point[] = [];
    for (const [load, median, p90] of [
      [0.4, 23, 90],
      [0.8, 40, 190],
      [1, 56, 246],
    ]) {
      const { flows } = await lab.packets('fct-dcqcn', [`flows[0].offered=${load * 8}Gbps`]);
      const times = flows
        .filter(({ completionNs, bytes }) => completionNs !== null && bytes !== null && bytes < 100_000)
        .map(({ completionNs }) => completionNs! / 1000)
        .sort((one, other) => one - other);
      const at = (share: number) => times[Math.floor(share * (times.length - 1))];
      points.push({
        x: load,
        values: [
          { what: `load ${load}, median`, unit: 'us', published: median, ours: at(0.5) },
          { what: `load ${load}, p90`, unit: 'us', published: p90, ours: at(0.9) },
        ],
      });
    }
    return byX(this, 'load', ['median, us', 'p90, us'], points);
  },
};

/** Those of simulators, then those of publications. */
export const PACKET_FIGURES: readonly Figure[] = [pfcFigure, timelyFigure, dcqcnFigure, fctFigure];
