/** Options of commands that sweep: axes, a CSV file and a chart. */

import { CommandFailure, checkWritable, EXIT_USAGE } from '@rocev2/command';
import { type Command, InvalidArgumentError } from 'commander';
import { namesHint } from 'rocev2/internal/core';
import { MEASURE_NAMES, type SweepMeasureName } from './measures.js';

export interface SweepOutputOptions {
  readonly over?: readonly string[];
  readonly csv?: string;
  readonly plot?: string;
  readonly y?: readonly SweepMeasureName[];
}

export function addSweepOutputOptions(command: Command): Command {
  return command
    .option('--csv <file>', 'write one line for each run')
    .option('--plot <file>', 'write means over the seeds, with 95 % confidence intervals, as an SVG chart')
    .option('--y <names>', 'columns of --csv for --plot, separated by commas', measureNames);
}

/** Before the runs: rejects axes without values, and files that cannot be written. */
export async function checkSweepOutputs({ over = [], csv, plot, y }: SweepOutputOptions): Promise<void> {
  const wrong = over.find((axis) => !/^[\w.[\]-]+=./.test(axis));
  if (wrong !== undefined) {
    throw new CommandFailure(EXIT_USAGE, `--over ${wrong}: write, for example, --over seed=1..8`);
  }
  if (y !== undefined && plot === undefined) throw new CommandFailure(EXIT_USAGE, '--y belongs to --plot');
  for (const path of [csv, plot]) await checkWritable(path);
}

function measureNames(text: string): SweepMeasureName[] {
  return text.split(',').map((name) => {
    if ((MEASURE_NAMES as readonly string[]).includes(name)) return name as SweepMeasureName;
    throw new InvalidArgumentError(`there is no column '${name}' (${namesHint(name, MEASURE_NAMES, 'there are')})`);
  });
}
