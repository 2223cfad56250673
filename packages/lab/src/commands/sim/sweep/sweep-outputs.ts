import { type Output, writeOutputFile } from '@rocev2/command';
import { csvOf, type MeasuredRun, type SweepMeasureName } from './measures.js';
import { sweepChart } from './sweep-chart.js';
import type { SweepOutputOptions } from './sweep-options.js';

/** Writes the files of --csv and --plot; `measures` are the panels of the chart without --y. */
export async function writeSweepOutputs(
  { csv, plot, y }: SweepOutputOptions,
  runs: readonly MeasuredRun[],
  { title, measures }: { readonly title: string; readonly measures: readonly SweepMeasureName[] },
  output: Output,
): Promise<void> {
  if (csv !== undefined) {
    await writeOutputFile(csv, csvOf(runs));
    output.note(`wrote ${csv}`);
  }
  if (plot !== undefined && runs.length > 0) {
    await writeOutputFile(plot, sweepChart(title, runs, y ?? measures));
    output.note(`wrote ${plot}`);
  }
}
