import { escapeXml, htmlTable } from '@rocev2/command/plot';
import type { ReportMeasure, SectionReader } from './section.js';

type Plain = string | number | boolean | null;
type PlainRecord = Readonly<Record<string, unknown>>;

const ROWS_MAX = 500;

export const recordsSection: SectionReader = (document) => {
  const lists = Array.isArray(document) ? [['', document] as const] : entriesOf(document);
  const tables = lists.filter((entry): entry is readonly [string, PlainRecord[]] => isRecordList(entry[1]));
  if (tables.length === 0) return undefined;
  const facts = lists.filter((entry): entry is readonly [string, Plain] => isPlain(entry[1]));
  return {
    title: 'Measurements',
    measures: tables.flatMap(([name, records]) => measuresOf(name, records)),
    body: [
      facts.length === 0
        ? ''
        : `<p>${facts.map(([name, value]) => escapeXml(`${name}: ${text(value)}`)).join(', ')}</p>`,
      ...tables.flatMap(([name, records]) => [name === '' ? '' : `<h3>${escapeXml(name)}</h3>`, tableOf(records)]),
    ],
  };
};

function measuresOf(list: string, records: readonly PlainRecord[]): ReportMeasure[] {
  const names = new Set<string>();
  return records.slice(0, ROWS_MAX).flatMap((record, row) => {
    const fields = [...flatten(record)];
    const texts = fields.flatMap(([, value]) => (typeof value === 'string' ? [value] : [])).join(' ');
    const name = [list, texts === '' || names.has(texts) ? `${texts} ${row + 1}`.trim() : texts].join(' ').trim();
    names.add(texts);
    return fields.flatMap(([field, value]) =>
      typeof value === 'number' ? [{ name: `${name}: ${field}`, value, text: text(value) }] : [],
    );
  });
}

function tableOf(records: readonly PlainRecord[]): string {
  const flat = records.slice(0, ROWS_MAX).map(flatten);
  const columns = [...new Set(flat.flatMap((record) => [...record.keys()]))];
  return htmlTable(
    columns,
    flat.map((record) => columns.map((column) => text(record.get(column) ?? null))),
  );
}

function flatten(record: PlainRecord): Map<string, Plain> {
  const fields = new Map<string, Plain>();
  for (const [name, value] of Object.entries(record)) {
    if (isPlain(value)) fields.set(name, value);
    else if (!Array.isArray(value))
      for (const [inner, plain] of flatten(value as PlainRecord)) fields.set(`${name}.${inner}`, plain);
  }
  return fields;
}

function text(value: Plain): string {
  if (value === null) return '';
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(4)));
}

function isPlain(value: unknown): value is Plain {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

function isRecordList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((item) => !isPlain(item) && !Array.isArray(item));
}

function entriesOf(document: unknown): Array<readonly [string, unknown]> {
  return document !== null && typeof document === 'object' ? Object.entries(document) : [];
}
