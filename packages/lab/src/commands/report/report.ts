import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { escapeXml, htmlPage } from '@rocev2/command/plot';
import { auditSection, captureSection } from './audit-section.js';
import { comparisonBody } from './comparison.js';
import { fluidSection } from './fluid-section.js';
import { livelockSection } from './livelock-section.js';
import { originLine, originOf, readableDate, withoutHead } from './origin.js';
import { recordsSection } from './records-section.js';
import { scenarioSection } from './scenario-section.js';
import type { ReportEntry, Section, SectionReader } from './section.js';
import { sweepSection } from './sweep-section.js';
import { transferSection } from './transfer-section.js';

const READERS: readonly SectionReader[] = [
  livelockSection,
  scenarioSection,
  sweepSection,
  fluidSection,
  transferSection,
  auditSection,
  recordsSection,
];

export interface Report {
  readonly title: string;
  readonly entries: readonly ReportEntry[];
  readonly base?: { readonly folder: string; readonly entries: readonly ReportEntry[] } | undefined;
  readonly made: { readonly date: string; readonly version: string };
}

export async function readReport(folder: string): Promise<ReportEntry[]> {
  const files = (await readdir(folder)).filter((name) => /\.(?:json|pcap|pcapng)$/.test(name)).sort();
  return Promise.all(
    files.map(async (file) => {
      if (!file.endsWith('.json')) {
        const section = await captureSection(join(folder, file)).catch(() => undefined);
        return { file, section, origin: new Map() };
      }
      const document = parse(await readFile(join(folder, file), 'utf8'));
      return { file, section: sectionOf(document), origin: originOf(document) };
    }),
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function sectionOf(document: unknown): Section | undefined {
  const result = withoutHead(document);
  for (const read of READERS) {
    const section = read(result);
    if (section !== undefined) return section;
  }
  return undefined;
}

export function reportPage({ title, entries, base, made }: Report): string {
  const shown = entries.filter((entry): entry is ReportEntry & { section: Section } => entry.section !== undefined);
  return htmlPage(title, [
    `<h1>${escapeXml(title)}</h1>`,
    `<p class="origin">${escapeXml(`written ${readableDate(made.date)} by rocev2 ${made.version}`)}</p>`,
    '<ol>',
    ...(base === undefined ? [] : ['<li><a href="#comparison">Comparison</a></li>']),
    ...shown.map(
      ({ file, section }, i) => `<li><a href="#s${i}">${escapeXml(section.title)}</a> (${escapeXml(file)})</li>`,
    ),
    '</ol>',
    ...(base === undefined
      ? []
      : [`<h2 id="comparison">Compared with ${escapeXml(base.folder)}</h2>`, ...comparisonBody(entries, base.entries)]),
    ...shown.flatMap(({ file, section, origin }, i) => [
      `<h2 id="s${i}">${escapeXml(section.title)}</h2>`,
      `<p><code>${escapeXml(file)}</code></p>`,
      originLine(origin),
      ...section.body,
    ]),
  ]);
}
