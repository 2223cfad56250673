import { escapeXml, htmlTable } from '@rocev2/command/plot';
import type { ReportOrigin } from './origin.js';
import type { ReportEntry } from './section.js';

export function comparisonBody(entries: readonly ReportEntry[], base: readonly ReportEntry[]): string[] {
  const baseOf = new Map(base.map((entry) => [entry.file, entry]));
  const body: string[] = [];
  const lonely: string[] = [];
  for (const { file, section, origin } of entries) {
    const other = baseOf.get(file);
    baseOf.delete(file);
    if (section === undefined) continue;
    if (other?.section === undefined) {
      lonely.push(`${file} is in this run only.`);
      continue;
    }
    const before = new Map(other.section.measures.map((measure) => [measure.name, measure]));
    const shared = section.measures.flatMap((after) => {
      const measure = before.get(after.name);
      return measure === undefined ? [] : [{ name: after.name, before: measure, after }];
    });
    if (shared.length === 0) {
      lonely.push(`${file} has no number in common.`);
      continue;
    }
    body.push(
      `<h3>${escapeXml(section.title)}</h3>`,
      `<p><code>${escapeXml(file)}</code></p>`,
      ...differences(other.origin, origin),
      htmlTable(
        ['Quantity', 'Base', 'This run', 'This run / base'],
        shared.map(({ name, before: { value, text }, after }) => [name, text, after.text, ratio(value, after.value)]),
      ),
    );
  }
  for (const { file } of baseOf.values()) lonely.push(`${file} is in the base only.`);
  return [...body, ...lonely.map((text) => `<p>${escapeXml(text)}</p>`)];
}

function differences(base: ReportOrigin, run: ReportOrigin): string[] {
  const named = (['command', 'versions', 'machine'] as const).filter((name) => base.get(name) !== run.get(name));
  if (named.length === 0) return [];
  const lines = named.map((name) => `${name}: ${base.get(name) ?? 'not known'} / ${run.get(name) ?? 'not known'}`);
  return [`<p class="differs">The runs differ.<br>${lines.map(escapeXml).join('<br>')}</p>`];
}

function ratio(base: number, run: number): string {
  if (base === 0) return run === 0 ? '1' : '';
  return String(Number((run / base).toPrecision(3)));
}
