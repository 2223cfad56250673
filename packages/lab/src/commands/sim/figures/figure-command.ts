import {
  CommandFailure,
  checkWritable,
  defineDocument,
  EXIT_USAGE,
  leftAligned,
  type Output,
  writeOutputFile,
} from '@rocev2/command';
import { figureLab } from './figure.js';
import {
  FIGURE_COLUMNS,
  type FigureResults,
  figureChart,
  figureResult,
  figureRow,
  listedFigure,
} from './figure-report.js';
import { FIGURES, figureNamed } from './index.js';

const SIM_FIGURE_DOCUMENT = defineDocument<FigureResults>('sim-figure');

export interface FigureOptions {
  readonly list?: true;
  readonly plot?: string;
}

export async function showFigure(name: string | undefined, options: FigureOptions, output: Output): Promise<void> {
  if (options.list || name === undefined) {
    if (name !== undefined || !options.list || options.plot !== undefined) {
      throw new CommandFailure(EXIT_USAGE, "name a figure, or give --list alone: 'rocev2 sim figure --list'");
    }
    output.table(
      leftAligned('Figure', 'By', 'What it shows'),
      FIGURES.map(({ name, by, title }) => [name, by, title]),
    );
    output.document(SIM_FIGURE_DOCUMENT, { figures: FIGURES.map(listedFigure) });
    return;
  }
  const chosen = figureNamed(name);
  await checkWritable(options.plot);
  const run = await chosen.run(figureLab(output.io.interrupted));
  const result = figureResult(chosen, run);
  output.line(output.colors.bold(result.title));
  output.line(`${result.source}; inside: no more than ${100 * result.tolerance} % away`);
  output.line();
  output.table(FIGURE_COLUMNS, result.values.map(figureRow));
  if (result.note !== null) output.line(`\n${result.note}`);
  if (options.plot !== undefined) {
    await writeOutputFile(options.plot, figureChart(chosen, run));
    output.note(`wrote ${options.plot}`);
  }
  output.document(SIM_FIGURE_DOCUMENT, { figures: [result] });
}
