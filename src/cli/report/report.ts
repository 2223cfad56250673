/** A folder of JSON documents as one HTML page that stands alone. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { htmlPage } from '../../plot/html-page.js';
import { escapeXml } from '../../plot/svg.js';
import { fluidSection } from './fluid-section.js';
import { livelockSection } from './livelock-section.js';
import { recordsSection } from './records-section.js';
import { scenarioSection } from './scenario-section.js';
import type { Section, SectionReader } from './section.js';
import { transferSection } from './transfer-section.js';

/** The first that understands a document has it. */
const READERS: readonly SectionReader[] = [
  livelockSection,
  scenarioSection,
  fluidSection,
  transferSection,
  recordsSection,
];

interface ReportEntry {
  readonly file: string;
  /** Undefined for what nobody understands. */
  readonly section: Section | undefined;
}

/** The JSON files of a folder in alphabetical order. Rejects when the folder cannot be read. */
export async function readReport(folder: string): Promise<ReportEntry[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
  return Promise.all(
    files.map(async (file) => ({ file, section: sectionOf(await readFile(join(folder, file), 'utf8')) })),
  );
}

/** The section for one document; undefined for what is no JSON or has nothing to show. */
export function sectionOf(text: string): Section | undefined {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  for (const read of READERS) {
    const section = read(document);
    if (section !== undefined) return section;
  }
  return undefined;
}

/** Only entries with sections. */
export function reportPage(title: string, entries: readonly ReportEntry[]): string {
  const shown = entries.filter((entry): entry is ReportEntry & { section: Section } => entry.section !== undefined);
  return htmlPage(title, [
    `<h1>${escapeXml(title)}</h1>`,
    '<ol>',
    ...shown.map(
      ({ file, section }, i) => `<li><a href="#s${i}">${escapeXml(section.title)}</a> (${escapeXml(file)})</li>`,
    ),
    '</ol>',
    ...shown.flatMap(({ file, section }, i) => [
      `<h2 id="s${i}">${escapeXml(section.title)}</h2>`,
      `<p><code>${escapeXml(file)}</code></p>`,
      ...section.body,
    ]),
  ]);
}
