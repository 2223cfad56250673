/** `rocev2 report`: the JSON documents of a folder as one page with plots and tables. */

import { join } from 'node:path';
import type { Command } from 'commander';
import { CommandFailure, EXIT_FAILED } from '../exit.js';
import { type CliIo, Output } from '../output.js';
import { writeOutputFile } from '../output-file.js';
import { readReport, reportPage } from '../report/report.js';

interface ReportOptions {
  readonly output?: string;
  readonly title: string;
  readonly json?: true;
}

/** Adds `rocev2 report` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('report')
    .description(
      'One HTML page that stands alone, with plots and tables, from the JSON documents in a folder: of livelock, sim run, fluid, bw, ' +
        'lat and the benches, each with --json.',
    )
    .argument('<dir>', 'the folder; its *.json files are read')
    .option('-o, --output <file>', 'where to write the page (default: report.html in the folder)')
    .option('--title <text>', 'heading of the page', 'rocev2 report')
    .option('--json', 'print {"page", "sections": [{"file", "title"}]} instead of words')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 report results
  rocev2 report results -o page.html --title 'Tuesday'
where results is filled for example by
  rocev2 livelock --ops write --json > results/livelock.json
  rocev2 sim run dcqcn-n10-85us --json > results/sim.json`,
    )
    .action((folder: string, options: ReportOptions) => report(folder, options, new Output(io, options.json === true)));
}

async function report(folder: string, { output: path, title }: ReportOptions, output: Output): Promise<void> {
  const entries = await readReport(folder).catch((cause: Error) => {
    throw new CommandFailure(EXIT_FAILED, `cannot read ${folder}: ${cause.message}`, { cause });
  });
  for (const { file } of entries.filter(({ section }) => section === undefined)) {
    output.note(`rocev2: ${file} left out: it is not the JSON of a command that can be shown`);
  }
  const shown = entries.flatMap(({ file, section }) => (section === undefined ? [] : [{ file, title: section.title }]));
  if (shown.length === 0) throw new CommandFailure(EXIT_FAILED, `${folder} has no JSON document that can be shown`);
  const page = path ?? join(folder, 'report.html');
  await writeOutputFile(page, reportPage(title, entries));
  for (const section of shown) output.line(`  ${section.file}: ${section.title}`);
  output.line(page);
  output.document({ page, sections: shown });
}
