import { type Column, counted, leftAligned, rightAligned } from '@rocev2/command';
import { renderLineChart } from '@rocev2/command/plot';
import { formatNs, formatRate } from 'rocev2/internal/core';
import { type FluidRun, type FluidStudy, type FluidTrace, flowCount, hasSettled, type Swing } from '../fluid/index.js';

const MODEL_NAMES = { dcqcn: 'DCQCN', timely: 'TIMELY', 'patched-timely': 'Patched TIMELY' } as const;

/** The fields of `fluid --json`. */
export interface FluidResult
  extends Pick<FluidStudy, 'model' | 'fixedPoint' | 'phaseMarginDegrees' | 'criticalDelayNs'> {
  /** Number of flows. */
  readonly flows: number;
  /** Feedback delay. */
  readonly delayNs: number;
  /** Queue and rates over time. */
  readonly trace: {
    /** Model time of each sample. */
    readonly timeNs: readonly number[];
    /** Length of the queue at each sample. */
    readonly queueBytes: readonly number[];
    /** By flow, the rate at each sample. */
    readonly rateBps: readonly (readonly number[])[];
  };
}

export function fluidDocument(study: FluidStudy, delayNs: number, trace: FluidTrace): FluidResult {
  return {
    model: study.model,
    flows: flowCount(study.groups),
    delayNs,
    fixedPoint: study.fixedPoint,
    phaseMarginDegrees: study.phaseMarginDegrees,
    criticalDelayNs: study.criticalDelayNs,
    trace: {
      timeNs: trace.timeNs,
      queueBytes: trace.queueBytes.map(Math.round),
      rateBps: study.groups.flatMap(({ count }, i) =>
        Array.from({ length: count }, () => trace.rateBps[i].map(Math.round)),
      ),
    },
  };
}

export function fluidHeadline(study: FluidStudy, delayNs: number): string {
  const flows = flowCount(study.groups);
  const controller = study.piAt === null ? '' : ` with PI at the ${study.piAt}`;
  const link = `${counted(flows, 'flow')} on ${formatRate(study.linkRateBps)}`;
  return `${MODEL_NAMES[study.model]}${controller}: ${link}, feedback delay ${formatNs(delayNs)}`;
}

interface LabelledText {
  readonly label: string;
  readonly text: string;
}

export function fluidTheory(study: FluidStudy): LabelledText[] {
  const { fixedPoint, phaseMarginDegrees, criticalDelayNs } = study;
  const lines: LabelledText[] = [];
  const add = (label: string, value: number | null, show: (value: number) => string): void => {
    if (value !== null) lines.push({ label, text: show(value) });
  };
  if (fixedPoint !== null) {
    add('queue at rest', fixedPoint.queueBytes, (bytes) => `${kilobytes(bytes)} KB`);
    add('rate of a flow', fixedPoint.rateBps, (rate) => `${gigabits(rate)} Gb/s`);
    add('target rate', fixedPoint.targetRateBps, (rate) => `${gigabits(rate)} Gb/s`);
    add('marking probability', fixedPoint.markProbability, (p) => `${(p * 100).toPrecision(4)} %`);
    add('alpha', fixedPoint.alpha, (alpha) => alpha.toFixed(4));
  }
  const { exact, authors } = phaseMarginDegrees;
  add('phase margin', exact, (degrees) => `${degrees.toFixed(1)} degrees (exact linearisation)`);
  add('', authors, (degrees) => `${degrees.toFixed(1)} degrees (authors' linearisation)`);
  if (exact !== null) lines.push({ label: 'critical delay', text: criticalText(criticalDelayNs) });
  add('fair within', study.convergenceBoundNs, (ns) => `${formatNs(ns)} (bound; to a tenth of a share)`);
  lines.push({ label: 'verdict', text: fluidVerdict(study) });
  return lines;
}

function fluidVerdict({ fixedPoint, phaseMarginDegrees, groups }: FluidStudy): string {
  if (fixedPoint === null) return 'no fixed point: the rates of TIMELY never settle';
  if (fixedPoint.queueBytes === null)
    return 'no fixed point: RED would have to mark more than Pmax (margins: same slope, longer ramp)';
  if (fixedPoint.rateBps === null) return 'no single fixed point: the hosts hold the queue with any split of the rates';
  if (flowCount(groups) === 1) return 'a single flow is limited to the line rate and builds no queue';
  const { exact } = phaseMarginDegrees;
  if (exact === null) return 'one fixed point; its phase margin is not computed';
  return exact > 0 ? 'stable: queue and rates settle' : 'unstable: queue and rates swing';
}

function criticalText(criticalDelayNs: number | null): string {
  if (criticalDelayNs === null) return 'none up to 2 ms';
  return criticalDelayNs === 0 ? 'none: unstable even without delay' : formatNs(criticalDelayNs);
}

export const SWING_COLUMNS: readonly Column[] = [
  ...leftAligned(''),
  ...rightAligned(
    'Delay',
    'Queue KB mean',
    'min',
    'max',
    'Rate Gb/s min',
    'max',
    'Slowest flow',
    'Fastest flow',
    'Link use',
  ),
  ...leftAligned('Queue'),
];

export function swingRow(asked: boolean, delayNs: number, { queueBytes, rateBps, utilization }: FluidRun): string[] {
  const means = rateBps.map(({ mean }) => mean);
  return [
    asked ? '>' : '',
    formatNs(delayNs),
    kilobytes(queueBytes.mean),
    kilobytes(queueBytes.min),
    kilobytes(queueBytes.max),
    gigabits(Math.min(...rateBps.map(({ min }) => min))),
    gigabits(Math.max(...rateBps.map(({ max }) => max))),
    gigabits(Math.min(...means)),
    gigabits(Math.max(...means)),
    `${(utilization * 100).toFixed(1)} %`,
    queueState(queueBytes),
  ];
}

function queueState(queueBytes: Swing): string {
  if (queueBytes.max === 0) return 'empty';
  return hasSettled(queueBytes) ? 'settles' : 'swings';
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}

function gigabits(bitsPerSecond: number): string {
  return (bitsPerSecond / 1e9).toFixed(3);
}

export function fluidChart(study: FluidStudy, delayNs: number, trace: FluidTrace): string {
  let first = 1;
  const names = study.groups.map(({ count }) => {
    const name = count === 1 ? `flow ${first}` : `each of flows ${first} to ${first + count - 1}`;
    first += count;
    return name;
  });
  return renderLineChart({
    title: fluidHeadline(study, delayNs),
    subtitle: `Fluid model; ${fluidVerdict(study)}`,
    xLabel: 'Time (ms)',
    x: trace.timeNs.map((ns) => ns / 1e6),
    panels: [
      {
        yLabel: 'Queue (KB)',
        series: [{ name: 'queue', values: trace.queueBytes.map((bytes) => bytes / 1000) }],
        // Flows that start at line rate overshoot so much that the rest would be flat.
        logFrom: 1,
      },
      {
        yLabel: 'Rate (Gb/s)',
        series: trace.rateBps.map((rates, i) => ({ name: names[i], values: rates.map((rate) => rate / 1e9) })),
      },
    ],
  });
}
