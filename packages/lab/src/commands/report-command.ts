/** `rocev2 report`: the JSON documents and captures of a folder as one page with plots, tables and ladders. */

import { join } from 'node:path';
import {
  type CliIo,
  CommandFailure,
  defineDocument,
  EXIT_FAILED,
  type Output,
  packageVersion,
  printing,
  writeOutputFile,
} from '@rocev2/command';
import type { Command } from 'commander';
import { whyUnreadable } from 'rocev2/internal/core';
import { wallMs } from 'rocev2/internal/driver';
import { readReport, reportPage } from './report/report.js';
import type { ReportEntry } from './report/section.js';

/** The fields of `report --json`. */
interface ReportResult {
  /** Path of the page. */
  readonly page: string;
  /** The sections of the page. */
  readonly sections: ReadonlyArray<{
    /** File name of the document. */
    readonly file: string;
    /** Heading of the section. */
    readonly title: string;
  }>;
}

const REPORT_DOCUMENT = defineDocument<ReportResult>('report');

interface ReportOptions {
  readonly output?: string;
  readonly title: string;
  readonly compare?: string;
}

/** Adds `rocev2 report` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('report')
    .description(
      'Make one self-contained HTML page with plots and tables from the JSON documents in a folder: those of livelock, sim run, sim sweep, fluid, ' +
        'audit, bw, lat and the benches. Captures in the folder are audited and drawn as ladders.',
    )
    .argument('<dir>', 'the folder; its *.json, *.pcap and *.pcapng files are read')
    .option('-o, --output <file>', 'output file (default: report.html in the folder)')
    .option('--compare <dir>', 'folder of another run; compares the numbers of files with the same name')
    .option('--title <text>', 'heading of the page', 'rocev2 report')
    .option('--json', 'print one JSON document (docs/json.md)')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 report results
  rocev2 report results -o page.html --title 'Tuesday'
  rocev2 report after --compare before
Fill the folder first, for example:
  rocev2 livelock --ops write --json > results/livelock.json
  rocev2 sim run dcqcn-n10-85us --json > results/sim.json`,
    )
    .action(printing(io, report));
}

async function report(folder: string, options: ReportOptions, output: Output): Promise<void> {
  const { output: path, title, compare } = options;
  const entries = await readFolder(folder, output);
  const base = compare === undefined ? undefined : { folder: compare, entries: await readFolder(compare, output) };
  const shown = entries.flatMap(({ file, section }) => (section === undefined ? [] : [{ file, title: section.title }]));
  const page = path ?? join(folder, 'report.html');
  const made = { date: new Date(wallMs()).toISOString(), version: packageVersion() };
  await writeOutputFile(page, reportPage({ title, entries, base, made }));
  for (const section of shown) output.line(`  ${section.file}: ${section.title}`);
  output.line(page);
  output.document(REPORT_DOCUMENT, { page, sections: shown });
}

async function readFolder(folder: string, output: Output): Promise<ReportEntry[]> {
  const entries = await readReport(folder).catch((cause: NodeJS.ErrnoException) => {
    throw new CommandFailure(EXIT_FAILED, `cannot read ${folder}: ${whyUnreadable(cause)}`, { cause });
  });
  const unknown = entries.filter(({ section }) => section === undefined);
  for (const { file } of unknown)
    output.note(`rocev2: ${file} is left out: it is not a document or a capture that report can show`);
  if (unknown.length === entries.length)
    throw new CommandFailure(EXIT_FAILED, `${folder} has no document or capture that report can show`);
  return entries;
}
