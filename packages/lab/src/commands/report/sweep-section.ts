/** The document of `sim sweep --json`: the swept values with their results, and plots over the swept values. */

import { barRows, type ChartPanel, COLORS, htmlTable, renderLineChart } from '@rocev2/command/plot';
import { formatRate } from 'rocev2/internal/core';
import { z } from 'zod';
import type { ScenarioResult, Summary } from '../../sim/scenario/result.js';
import { mean } from '../../sim/statistics.js';
import { isScenarioResult } from '../sim/result-schema.js';
import type { SectionReader } from './section.js';

const documentSchema = z.looseObject({
  runs: z.array(z.looseObject({ point: z.array(z.string()).min(1), result: z.unknown() })).min(1),
});

/** Runs that differ in it alone are repetitions: plots show their mean. */
const SEED = 'seed';

const COLUMNS: ReadonlyArray<readonly [title: string, value: (summary: Summary) => number | string]> = [
  ['Goodput', ({ goodputBps }) => formatRate(goodputBps)],
  ['Jain', ({ jain }) => jain.toFixed(4)],
  ['Queue mean KB', ({ queueMeanBytes }) => (queueMeanBytes / 1000).toFixed(1)],
  ['p99 KB', ({ queueP99Bytes }) => (queueP99Bytes / 1000).toFixed(1)],
  ['CNPs', ({ cnps }) => cnps],
  ['Pauses', ({ pauseFrames }) => pauseFrames],
  ['Dropped', ({ droppedPackets }) => droppedPackets],
];

const PANELS: ReadonlyArray<readonly [yLabel: string, value: (summary: Summary) => number]> = [
  ['Goodput (Gb/s)', ({ goodputBps }) => goodputBps / 1e9],
  ['Jain index', ({ jain }) => jain],
  ['Queue, mean (KB)', ({ queueMeanBytes }) => queueMeanBytes / 1000],
  ['Queue, p99 (KB)', ({ queueP99Bytes }) => queueP99Bytes / 1000],
  ['CNPs', ({ cnps }) => cnps],
  ['Pause frames', ({ pauseFrames }) => pauseFrames],
  ['Packets dropped', ({ droppedPackets }) => droppedPackets],
];

interface SweepRun {
  readonly values: ReadonlyMap<string, string>;
  readonly result: ScenarioResult;
}

export const sweepSection: SectionReader = (document) => {
  const parsed = documentSchema.safeParse(document);
  if (!parsed.success) return undefined;
  const runs = parsed.data.runs.flatMap(({ point, result }) =>
    isScenarioResult(result) ? [{ values: valuesOf(point), result }] : [],
  );
  if (runs.length < parsed.data.runs.length) return undefined;
  const axes = [...runs[0].values.keys()];
  const nameOf = ({ values }: SweepRun) => axes.map((axis) => `${axis}=${values.get(axis)}`).join(', ');
  return {
    title: `Sweep of ${axes.join(' and ')}: ${runs[0].result.title || runs[0].result.scenario}`,
    measures: runs.map((run) => {
      const { goodputBps } = run.result.summary;
      return { name: `${nameOf(run)}: goodput`, value: goodputBps, text: formatRate(goodputBps) };
    }),
    body: [
      plotOf(runs, axes),
      htmlTable(
        [...axes, ...COLUMNS.map(([title]) => title), 'Assertions', 'Trace'],
        runs.map(({ values, result }) => {
          const failed = result.assertions.filter(({ ok }) => !ok).length;
          return [
            ...axes.map((axis) => values.get(axis) ?? ''),
            ...COLUMNS.map(([, value]) => value(result.summary)),
            failed === 0 ? 'ok' : `${failed} failed`,
            result.traceHash,
          ];
        }),
      ),
    ],
  };
};

function valuesOf(point: readonly string[]): Map<string, string> {
  return new Map(
    point.map((text) => {
      const split = text.indexOf('=');
      return [text.slice(0, split), text.slice(split + 1)];
    }),
  );
}

/** Lines over the first axis with numbers, or bars where no axis has any. */
function plotOf(runs: readonly SweepRun[], axes: readonly string[]): string {
  const title = 'Results over the swept values';
  const subtitle = axes.includes(SEED) ? 'mean of all seeds' : '';
  const plotted = axes.filter((axis) => axis !== SEED);
  const xAxis = plotted.find((axis) => numbersOf(runs, axis) !== undefined);
  if (xAxis === undefined) {
    const label = ({ values }: SweepRun) =>
      (plotted.length === 0 ? axes : plotted).map((axis) => values.get(axis)).join(', ');
    const means = [...grouped(runs, label)].map(([name, group]) => ({
      name,
      value: mean(group.map(({ result }) => result.summary.goodputBps)),
    }));
    const max = Math.max(...means.map(({ value }) => value));
    const bar = (value: number) => ({ value, max, color: COLORS.data, text: formatRate(value) });
    return `<h3>Goodput</h3>${barRows(means.map(({ name, value }) => ({ label: name, bars: [bar(value)] })))}`;
  }
  const { unit, x, numberOf } = numbersOf(runs, xAxis)!;
  const others = plotted.filter((axis) => axis !== xAxis);
  const lines = [...grouped(runs, ({ values }) => others.map((axis) => `${axis}=${values.get(axis)}`).join(', '))];
  const panels = PANELS.flatMap(([yLabel, value]): ChartPanel[] => {
    const series = lines.map(([name, group]) => ({
      name: name === '' ? yLabel : name,
      values: x.map((at) =>
        mean(group.filter((run) => numberOf(run) === at).map(({ result }) => value(result.summary))),
      ),
    }));
    return series.some(({ values }) => values.some((y) => y > 0)) ? [{ yLabel, series }] : [];
  });
  return renderLineChart({ title, subtitle, xLabel: unit === '' ? xAxis : `${xAxis} (${unit})`, x, panels });
}

function grouped(runs: readonly SweepRun[], keyOf: (run: SweepRun) => string): Map<string, SweepRun[]> {
  const groups = new Map<string, SweepRun[]>();
  for (const run of runs) groups.set(keyOf(run), [...(groups.get(keyOf(run)) ?? []), run]);
  return groups;
}

/** The values of an axis as numbers of one unit; undefined if it has other values, or less than two. */
function numbersOf(runs: readonly SweepRun[], axis: string) {
  const parse = ({ values }: SweepRun) => /^(-?[\d.]+(?:e-?\d+)?)([A-Za-z%]*)$/.exec(values.get(axis) ?? '');
  const parsed = runs.map(parse);
  const [first] = parsed;
  if (first === null || parsed.some((match) => match === null || match[2] !== first[2])) return undefined;
  const numberOf = (run: SweepRun) => Number(parse(run)![1]);
  const x = [...new Set(runs.map(numberOf))].sort((a, b) => a - b);
  return x.length < 2 ? undefined : { unit: first[2], x, numberOf };
}
