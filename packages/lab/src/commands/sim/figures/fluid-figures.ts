/** Published values are read off the figures, or from the data of their authors. */

import type { ChartPanel, ChartSeries } from '@rocev2/command/plot';
import { SeededRandom } from 'rocev2/internal/core';
import {
  authorsDcqcnLoop,
  DCQCN_LONG_RAMP,
  DCQCN_PI,
  DCQCN_SIGCOMM15,
  type DcqcnStudyOptions,
  dcqcnStudy,
  type FlowGroup,
  type FluidRun,
  PATCHED_TIMELY_CONEXT16,
  PATCHED_TIMELY_PI_CONEXT16,
  patchedTimelyLoop,
  patchedTimelyStudy,
  phaseMargin,
  publishedHostPi,
  TIMELY_SIGCOMM15,
  timelyStudy,
  togetherAtStart,
} from '../../../fluid/index.js';
import { compared, type Figure, type FigureValue } from './figure.js';

const KB = 1000;
const GB = 1e9;
const MS = 1e6;

const from = (...gigabits: number[]): FlowGroup[] =>
  gigabits.map((rate) => ({ count: 1, startNs: 0, initialRateBps: rate * GB }));

const dcqcn = (flows: number, options: Partial<DcqcnStudyOptions> = {}) =>
  dcqcnStudy({ parameters: DCQCN_LONG_RAMP, groups: togetherAtStart(flows), delayNs: 4000, ...options });

const queueLine = (name: string, { trace }: FluidRun): ChartSeries => ({
  name,
  values: trace.queueBytes.map((bytes) => bytes / KB),
});

const rateLine = (name: string, { trace }: FluidRun, group: number): ChartSeries => ({
  name,
  values: trace.rateBps[group].map((rate) => rate / GB),
});

const level = (name: string, value: number, { trace }: FluidRun): ChartSeries => ({
  name: `published: ${name}`,
  values: trace.timeNs.map(() => value),
});

function timeChart({ trace }: FluidRun, panels: readonly ChartPanel[]) {
  return { xLabel: 'time (ms)', x: trace.timeNs.map((ns) => ns / MS), panels };
}

const queue = (what: string, published: number, bytes: number): FigureValue =>
  compared(what, 'KB', published, bytes / KB);
const rate = (what: string, published: number, bps: number): FigureValue => compared(what, 'Gb/s', published, bps / GB);

function leastMargin(marginAt: (flows: number) => number, flows: readonly number[]) {
  const margins = flows.map(marginAt);
  return { margins, least: Math.min(...margins) };
}

const EVEN_FLOWS = Array.from({ length: 50 }, (_, i) => 2 * (i + 1));

const margins: Figure = {
  name: 'conext16-3',
  title: 'Phase margin of DCQCN by the number of flows, with a smaller R_AI and a longer ramp',
  source: "CoNEXT'16, figures 3(b) and 3(c)",
  by: 'fluid',
  async run() {
    const slow = { ...DCQCN_SIGCOMM15, additiveIncreaseBps: 10e6 };
    const at = (parameters: typeof slow, delayUs: number) =>
      leastMargin((flows) => phaseMargin(authorsDcqcnLoop(parameters, flows, delayUs * 1e-6))!.degrees, EVEN_FLOWS);
    const [b50, b100, c100] = [at(slow, 50), at(slow, 100), at({ ...slow, kmaxBytes: 1_000_000 }, 100)];
    const degrees = (what: string, published: number, ours: number) => compared(what, 'degrees', published, ours);
    const flat = (name: string, value: number) => ({
      name: `published least, ${name}`,
      values: EVEN_FLOWS.map(() => value),
    });
    return {
      values: [
        degrees('least margin, R_AI 10 Mb/s, 50 us', 4.25, b50.least),
        degrees('least margin, R_AI 10 Mb/s, 100 us', -2.56, b100.least),
        degrees('least margin, R_AI 10 Mb/s and Kmax 1000 KB, 100 us', 15.5, c100.least),
      ],
      chart: {
        xLabel: 'flows',
        x: EVEN_FLOWS,
        panels: [
          {
            yLabel: 'degrees',
            series: [
              { name: '50 us', values: b50.margins },
              { name: '100 us', values: b100.margins },
              { name: '100 us, Kmax 1000 KB', values: c100.margins },
              flat('50 us', 4.25),
              flat('100 us', -2.56),
              flat('Kmax 1000 KB', 15.5),
            ],
          },
        ],
      },
    };
  },
};

const queues: Figure = {
  name: 'conext16-4',
  title: 'Queue of DCQCN at a feedback delay of 4 us, and of 10 flows at 85 us',
  source: "CoNEXT'16, figure 4",
  by: 'fluid',
  async run(lab) {
    const times = { durationNs: 100 * MS, observeNs: 30 * MS };
    const [two, ten, many] = [
      await lab.fluid(dcqcn(2), 4000, times),
      await lab.fluid(dcqcn(10), 4000, times),
      await lab.fluid(dcqcn(64), 4000, times),
    ];
    const far = await lab.fluid(dcqcn(10), 85_000, times);
    const published = [20.1, 125.1, 1178] as const;
    return {
      values: [
        queue('2 flows, 4 us', published[0], two.queueBytes.mean),
        queue('10 flows, 4 us', published[1], ten.queueBytes.mean),
        queue('64 flows, 4 us', published[2], many.queueBytes.mean),
        queue('10 flows, 85 us, largest', 275.6, far.queueBytes.max),
        rate('10 flows, 85 us, least rate', 3.7, far.rateBps[0].min),
      ],
      chart: timeChart(two, [
        {
          yLabel: 'queue at 4 us, KB',
          logFrom: 1,
          series: [
            queueLine('2 flows', two),
            queueLine('10 flows', ten),
            queueLine('64 flows', many),
            ...published.map((value) => level(`${value} KB`, value, two)),
          ],
        },
        {
          yLabel: 'queue at 85 us, KB',
          logFrom: 1,
          series: [queueLine('10 flows', far), level('up to 275.6 KB', 275.6, far)],
        },
      ]),
    };
  },
};

const timelyStarts: Figure = {
  name: 'conext16-9',
  title: 'Two flows of TIMELY: their shares depend on how they began',
  source: "CoNEXT'16, figure 9",
  by: 'fluid',
  note: 'The model has no noise and no hyper-active increase. From equal starts it stays equal, and a flow that is alone for 10 ms gets less far ahead. See packages/lab/docs/figure-notes.md.',
  async run(lab) {
    const times = { durationNs: 500 * MS, observeNs: 100 * MS };
    const study = (groups: FlowGroup[]) => timelyStudy({ parameters: TIMELY_SIGCOMM15, groups, delayNs: 4000 });
    const apart = await lab.fluid(study(from(7, 3)), 4000, times);
    const equal = await lab.fluid(study(from(5, 5)), 4000, times);
    const [first, second] = from(5, 5);
    const late = await lab.fluid(study([first, { ...second, startNs: 10 * MS }]), 4000, times);
    const pair = (name: string, run: FluidRun, published: readonly [number, number]) => [
      rate(`${name}, first flow`, published[0], run.rateBps[0].mean),
      rate(`${name}, second flow`, published[1], run.rateBps[1].mean),
    ];
    const panel = (name: string, run: FluidRun, published: readonly [number, number]): ChartPanel => ({
      yLabel: `${name}, Gb/s`,
      series: [
        rateLine('first flow', run, 0),
        rateLine('second flow', run, 1),
        level('first', published[0], run),
        level('second', published[1], run),
      ],
    });
    return {
      values: [
        ...pair('from 7 and 3 Gb/s', apart, [6.25, 2.88]),
        ...pair('from 5 and 5 Gb/s', equal, [5.1, 3.89]),
        ...pair('from 5 and 5 Gb/s, the second 10 ms late', late, [2.8, 6.37]),
      ],
      chart: timeChart(apart, [
        panel('from 7 and 3', apart, [6.25, 2.88]),
        panel('from 5 and 5', equal, [5.1, 3.89]),
        panel('second 10 ms late', late, [2.8, 6.37]),
      ]),
    };
  },
};

const patchedTimely: Figure = {
  name: 'conext16-12',
  title: 'Patched TIMELY: two flows from 7 and 3 Gb/s meet; 40 flows swing',
  source: "CoNEXT'16, figure 12",
  by: 'fluid',
  note: 'The published queue of two flows lies below the fixed point of the published equations, 78.1 KB. 40 flows have a weight of slope 1/2, as the published margins do. With the slope 2 of algorithm 2 they swing from 275 to 374 KB.',
  async run(lab) {
    const study = (groups: FlowGroup[]) =>
      patchedTimelyStudy({ parameters: PATCHED_TIMELY_CONEXT16, groups, delayNs: 4000 });
    const times = { durationNs: 400 * MS, observeNs: 100 * MS };
    const two = await lab.fluid(study(from(7, 3)), 4000, times);
    const gentle = patchedTimelyStudy({
      parameters: { ...PATCHED_TIMELY_CONEXT16, weightSlope: 0.5 },
      groups: [{ count: 40, startNs: 0, initialRateBps: 0.25 * GB }],
      delayNs: 4000,
    });
    const many = await lab.fluid(gentle, 4000, times);
    return {
      values: [
        rate('first of two flows', 4.79, two.rateBps[0].mean),
        rate('second of two flows', 4.79, two.rateBps[1].mean),
        queue('two flows', 72.7, two.queueBytes.mean),
        queue('40 flows', 361, many.queueBytes.mean),
        queue('40 flows, least', 337, many.queueBytes.min),
        queue('40 flows, largest', 387, many.queueBytes.max),
      ],
      chart: timeChart(two, [
        {
          yLabel: 'two flows, Gb/s',
          series: [rateLine('first', two, 0), rateLine('second', two, 1), level('both 4.79', 4.79, two)],
        },
        {
          yLabel: 'queue, KB',
          series: [
            queueLine('two flows', two),
            queueLine('40 flows', many),
            level('two flows', 72.7, two),
            level('40 flows, 337', 337, two),
            level('to 387', 387, two),
          ],
        },
      ]),
    };
  },
};

const patchedMargins: Figure = {
  name: 'conext16-patched-margin',
  title: 'Phase margin of patched TIMELY by the number of flows',
  source: "CoNEXT'16, stability of patched TIMELY; data of the authors, for a weight of slope 1/2",
  by: 'fluid',
  async run() {
    const flows = [2, 4, 10, 20, 30, 36, 38, 40, 44, 50];
    const published = [-1.9, 5.2, 28.5, 41.6, 22.1, 7.8, 3.2, -1.3, -10, -22.3];
    const parameters = { ...PATCHED_TIMELY_CONEXT16, weightSlope: 0.5 };
    const ours = flows.map((count) => phaseMargin(patchedTimelyLoop(parameters, count, 0))!.degrees);
    return {
      values: flows.map((count, i) => compared(`${count} flows, no delay`, 'degrees', published[i], ours[i])),
      chart: {
        xLabel: 'flows',
        x: flows,
        panels: [
          {
            yLabel: 'degrees',
            series: [
              { name: 'ours', values: ours },
              { name: 'published', values: published },
            ],
          },
        ],
      },
    };
  },
};

const marking: Figure = {
  name: 'conext16-17',
  title: 'Two flows of DCQCN at 85 us: marks decided when a packet leaves, and when it comes',
  source: "CoNEXT'16, figure 17",
  by: 'fluid',
  async run(lab) {
    const times = { durationNs: 200 * MS, observeNs: 50 * MS };
    const egress = await lab.fluid(dcqcn(2), 85_000, times);
    const enqueue = await lab.fluid(dcqcn(2, { marking: 'enqueue' }), 85_000, times);
    return {
      values: [
        queue('as it leaves, least', 20.4, egress.queueBytes.min),
        queue('as it leaves, largest', 20.7, egress.queueBytes.max),
        queue('as it comes, largest', 39.6, enqueue.queueBytes.max),
      ],
      chart: timeChart(egress, [
        {
          yLabel: 'queue, KB',
          series: [
            queueLine('as it leaves', egress),
            queueLine('as it comes', enqueue),
            level('as it leaves', 20.55, egress),
            level('as it comes, up to 39.6 KB', 39.6, egress),
          ],
        },
      ]),
    };
  },
};

const switchPi: Figure = {
  name: 'conext16-18',
  title: 'DCQCN with a PI controller at the switch, reference 200 KB',
  source: "CoNEXT'16, figure 18, means of the last tenth",
  by: 'fluid',
  note: 'The published gains are per step of a solver; ours were found by search, and reach the reference.',
  async run(lab) {
    const times = { durationNs: 1000 * MS, observeNs: 100 * MS };
    const cases = [
      [2, 197],
      [10, 206.75],
      [64, 204],
    ] as const;
    const runs: FluidRun[] = [];
    for (const [flows] of cases) runs.push(await lab.fluid(dcqcn(flows, { pi: DCQCN_PI }), 4000, times));
    return {
      values: cases.map(([flows, published], i) => queue(`${flows} flows`, published, runs[i].queueBytes.mean)),
      chart: timeChart(runs[0], [
        {
          yLabel: 'queue, KB',
          logFrom: 10,
          series: cases.flatMap(([flows, published], i) => [
            queueLine(`${flows} flows`, runs[i]),
            level(`${flows} flows`, published, runs[0]),
          ]),
        },
      ]),
    };
  },
};

const hostPi: Figure = {
  name: 'conext16-19',
  title: 'Patched TIMELY with a PI controller in each host: the queue stands, the shares stay apart',
  source: "CoNEXT'16, figure 19",
  by: 'fluid',
  note: 'Every split of the link is an equilibrium: a run stops where its start leaves it, and how the published controllers started is not known. Ours start at 0.',
  async run(lab) {
    const parameters = PATCHED_TIMELY_PI_CONEXT16;
    const pi = { gains: publishedHostPi(parameters), scope: 'per-flow' as const };
    const study = patchedTimelyStudy({ parameters, groups: from(7, 3), delayNs: 4000, pi });
    const run = await lab.fluid(study, 4000);
    return {
      values: [
        rate('first flow', 7.87, run.rateBps[0].mean),
        rate('second flow', 2.13, run.rateBps[1].mean),
        queue('queue', 343.5, run.queueBytes.mean),
      ],
      chart: timeChart(run, [
        {
          yLabel: 'rate, Gb/s',
          series: [
            rateLine('first', run, 0),
            rateLine('second', run, 1),
            level('7.87', 7.87, run),
            level('2.13', 2.13, run),
          ],
        },
        { yLabel: 'queue, KB', series: [queueLine('queue', run), level('343.5 KB', 343.5, run)] },
      ]),
    };
  },
};

const jitter: Figure = {
  name: 'conext16-20',
  title: 'Feedback that is late by up to 100 us: DCQCN does not mind, patched TIMELY does',
  source: "CoNEXT'16, figure 20",
  by: 'fluid',
  note: 'Here jitter is in the age and in the value of each round trip, so that patched TIMELY takes it for congestion and leaves the link in part unused. The publication does not say where its jitter entered.',
  async run(lab) {
    const times = { durationNs: 200 * MS, observeNs: 100 * MS };
    const late = () => ({ maxNs: 100_000, periodNs: 50_000, random: new SeededRandom(1).stream('feedback-jitter') });
    const marks = await lab.fluid(dcqcn(2, { jitter: late }), 4000, times);
    const groups = togetherAtStart(2);
    const delay = patchedTimelyStudy({ parameters: PATCHED_TIMELY_CONEXT16, groups, delayNs: 4000, jitter: late });
    const trips = await lab.fluid(delay, 4000, times);
    return {
      values: [
        queue('DCQCN', 20.5, marks.queueBytes.mean),
        queue('patched TIMELY', 32, trips.queueBytes.mean),
        queue('patched TIMELY, largest', 83, trips.queueBytes.max),
      ],
      chart: timeChart(marks, [
        { yLabel: 'DCQCN, queue KB', series: [queueLine('ours', marks), level('20.5 KB', 20.5, marks)] },
        {
          yLabel: 'patched TIMELY, queue KB',
          series: [queueLine('ours', trips), level('mean 32 KB', 32, trips), level('up to 83 KB', 83, trips)],
        },
      ]),
    };
  },
};

export const FLUID_FIGURES: readonly Figure[] = [
  margins,
  queues,
  timelyStarts,
  patchedTimely,
  patchedMargins,
  marking,
  switchPi,
  hostPi,
  jitter,
];
