/** The numbers of runs: columns of CSV files, and their means over seeds with confidence intervals. */

import type { ScenarioResult, Summary } from '../../../sim/scenario/result.js';
import { mean } from '../../../sim/statistics.js';
import { type SweepPoint, type SweepResult, textOf } from './points.js';

type Measure = (result: ScenarioResult) => number | null;

const of =
  (name: keyof Summary): Measure =>
  ({ summary }) =>
    summary[name] as number | null;

/** By the names of columns. */
const MEASURES = {
  goodputBps: of('goodputBps'),
  efficiency: of('efficiency'),
  theoreticalEfficiency: of('theoreticalEfficiency'),
  jain: of('jain'),
  minGoodputBps: of('minGoodputBps'),
  maxGoodputBps: of('maxGoodputBps'),
  queueMeanBytes: of('queueMeanBytes'),
  queueP99Bytes: of('queueP99Bytes'),
  markedPackets: of('markedPackets'),
  cnps: of('cnps'),
  pauseFrames: of('pauseFrames'),
  droppedPackets: of('droppedPackets'),
  retransmittedPackets: of('retransmittedPackets'),
  failedFlows: of('failedFlows'),
  completedFlows: ({ summary }) => summary.completions.count,
  unfinishedFlows: ({ summary }) => summary.completions.unfinished,
  completionP50Ns: ({ summary }) => summary.completions.p50Ns,
  completionP99Ns: ({ summary }) => summary.completions.p99Ns,
  smallCompletionP50Ns: ({ summary }) => summary.smallCompletions.p50Ns,
  smallCompletionP99Ns: ({ summary }) => summary.smallCompletions.p99Ns,
  failedAssertions: ({ assertions }) => assertions.filter(({ ok }) => !ok).length,
} as const satisfies Readonly<Record<string, Measure>>;

/** Name of a column of `sim sweep --csv`. */
export type SweepMeasureName = keyof typeof MEASURES;

export const MEASURE_NAMES = Object.keys(MEASURES) as readonly SweepMeasureName[];

/** The numbers of a run, by column; those that it lacks are null or left out. */
export type RunMeasures = Readonly<Partial<Record<SweepMeasureName, number | null>>>;

/** A run of the simulator or of processes. */
export interface MeasuredRun {
  /** The value of each axis, by its path. */
  readonly point: SweepPoint;
  readonly measures: RunMeasures;
  /** Of a simulated run. */
  readonly traceHash?: string;
}

export function measuredRun({ point, result }: SweepResult): MeasuredRun {
  const measures = Object.fromEntries(MEASURE_NAMES.map((name) => [name, MEASURES[name](result)]));
  return { point, measures, traceHash: result.traceHash };
}

/** The runs of one point that differ in their seeds alone. */
export interface SeedGroup {
  /** The value of each other axis, by its path. */
  readonly point: SweepPoint;
  readonly runs: readonly RunMeasures[];
}

/** In the order of the sweep. */
export function bySeed(runs: readonly MeasuredRun[]): SeedGroup[] {
  const groups = new Map<string, { point: SweepPoint; runs: RunMeasures[] }>();
  for (const { point, measures } of runs) {
    const { seed: _, ...rest } = point;
    const key = JSON.stringify(rest);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { point: rest, runs: [measures] });
    else group.runs.push(measures);
  }
  return [...groups.values()];
}

/**
 * True if the runs of several seeds have the same numbers, so that they say nothing about others. Their trace hashes
 * differ even then, because keys and queue pair numbers are random.
 */
export function isUnaffectedBySeed({ runs }: SeedGroup): boolean {
  const [first, ...others] = runs;
  return others.length > 0 && others.every((other) => MEASURE_NAMES.every((name) => other[name] === first[name]));
}

/** A mean over seeds. */
export interface Estimate {
  /** Arithmetic mean of the runs that have a value; NaN if none has. */
  readonly mean: number;
  /** Half of the confidence interval of 95 % by Student's t distribution; 0 for a single run. */
  readonly errorHalf: number;
}

/** Quantiles 0.975 of Student's t distribution for 1 to 30 degrees of freedom; the normal one follows. */
const T_QUANTILES = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL_QUANTILE = 1.96;

export function estimate(name: SweepMeasureName, { runs }: SeedGroup): Estimate {
  const values = runs.map((run) => run[name] ?? null).filter((value) => value !== null);
  const middle = mean(values);
  const freedom = values.length - 1;
  if (freedom < 1) return { mean: middle, errorHalf: 0 };
  const variance = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / freedom;
  return {
    mean: middle,
    errorHalf: (T_QUANTILES[freedom - 1] ?? NORMAL_QUANTILE) * Math.sqrt(variance / values.length),
  };
}

/** One line for each run: the axes, all measures, and the trace hash. */
export function csvOf(runs: readonly MeasuredRun[]): string {
  const axes = Object.keys(runs[0]?.point ?? {});
  const lines = runs.map(({ point, measures, traceHash = '' }) => [
    ...axes.map((path) => quoted(textOf(point[path]))),
    ...MEASURE_NAMES.map((name) => String(measures[name] ?? '')),
    traceHash,
  ]);
  return `${[[...axes.map(quoted), ...MEASURE_NAMES, 'traceHash'], ...lines].map((line) => line.join(',')).join('\n')}\n`;
}

/** RFC 4180. */
function quoted(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
