import { CommandFailure, EXIT_USAGE } from '@rocev2/command';
import { type ChartPanel, renderLineChart } from '@rocev2/command/plot';
import {
  bySeed,
  estimate,
  isUnaffectedBySeed,
  type MeasuredRun,
  type SeedGroup,
  type SweepMeasureName,
} from './measures.js';
import { type SweepPoint, textOf } from './points.js';

/** From this ratio of the largest to the smallest x value on, the axis is logarithmic. */
const LOG_RATIO = 50;

const UNITS: Readonly<Record<string, { readonly unit: string; readonly divisor: number }>> = {
  Bps: { unit: 'Gb/s', divisor: 1e9 },
  Bytes: { unit: 'KB', divisor: 1e3 },
  Ns: { unit: 'us', divisor: 1e3 },
};

/** Measures over the first axis that is not the seed, a line for each combination of the others. */
export function sweepChart(title: string, runs: readonly MeasuredRun[], measures: readonly SweepMeasureName[]): string {
  const groups = bySeed(runs);
  const unaffected = groups.find(isUnaffectedBySeed);
  if (unaffected !== undefined) {
    throw new CommandFailure(
      EXIT_USAGE,
      `all seeds give the same run, so there is no confidence interval: --set jitter=10us starts flows at random times`,
    );
  }
  const [xPath, ...rest] = Object.keys(groups[0].point);
  const others = rest.filter((path) => new Set(groups.map(({ point }) => textOf(point[path]))).size > 1);
  const names = [...new Set(groups.map(({ point }) => textOf(point[xPath])))];
  const numbers = names.map(numberOf);
  const isNumeric = numbers.every((value) => Number.isFinite(value)) && new Set(names.map(unitOf)).size === 1;
  const x = isNumeric ? [...numbers].sort((a, b) => a - b) : names.map((_, i) => i);
  const nameOf = (at: number) => (isNumeric ? names[numbers.indexOf(at)] : names[at]);
  const lineOf = (point: SweepPoint) => others.map((path) => `${path}=${textOf(point[path])}`).join(', ');
  const lines = [...new Set(groups.map(({ point }) => lineOf(point)))];
  const groupAt = (line: string, at: number): SeedGroup => {
    const group = groups.find(({ point }) => lineOf(point) === line && textOf(point[xPath]) === nameOf(at));
    return group ?? { point: {}, runs: [] };
  };
  const panels = measures.map((name): ChartPanel => {
    const { unit, divisor } = Object.entries(UNITS).find(([ending]) => name.endsWith(ending))?.[1] ?? {
      unit: '',
      divisor: 1,
    };
    return {
      yLabel: unit === '' ? name : `${name.replace(/(Bps|Bytes|Ns)$/, '')} (${unit})`,
      series: lines.map((line) => {
        const estimates = x.map((at) => estimate(name, groupAt(line, at)));
        return {
          name: line === '' ? name : line,
          values: estimates.map(({ mean }) => (Number.isNaN(mean) ? null : mean / divisor)),
          errors: estimates.map(({ errorHalf }) => errorHalf / divisor),
        };
      }),
    };
  });
  const seeds = Math.max(...groups.map(({ runs: ofSeeds }) => ofSeeds.length));
  const unit = isNumeric && unitOf(names[0]) !== '' ? ` (${unitOf(names[0])})` : '';
  return renderLineChart({
    title,
    subtitle: seeds > 1 ? `mean of ${seeds} seeds; bars: 95 % confidence intervals` : 'one run for each point',
    xLabel: `${xPath}${unit}`,
    x,
    ...(!isNumeric && { xNames: names }),
    hasLogX: isNumeric && x[0] > 0 && x[x.length - 1] / x[0] >= LOG_RATIO,
    panels,
  });
}

function numberOf(text: string): number {
  return text === '' ? Number.NaN : Number(text.slice(0, text.length - unitOf(text).length));
}

function unitOf(text: string): string {
  return /[A-Za-z]+$/.exec(text)?.[0] ?? '';
}
