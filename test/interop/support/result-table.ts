/**
 * A vitest reporter: the matrix as a table {tool, our role, address family, path MTU, what, result, day}. Printed at the end of the suite, and
 * written as Markdown where INTEROP_TABLE names a file: rows of this run replace those of the same cell there, and the others stay.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import type { Cell } from './cell.js';

const TITLES = ['peer', 'our role', 'IP', 'MTU', 'what', 'result', 'day'] as const;
/** The titles before this one say which cell a row is about. */
const RESULT = TITLES.indexOf('result');
const MARKS = { passed: 'passed', failed: 'FAILED', skipped: 'skipped', pending: 'not run' } as const;

type Row = readonly string[];

function rowOf(test: TestCase): Row {
  const cell: Partial<Cell> = test.meta().cell ?? {};
  const { tool, role, family, mtu, what } = cell;
  const retries = test.diagnostic()?.retryCount ?? 0;
  return [
    tool ?? test.fullName.slice(0, test.fullName.length - test.name.length).replace(/ > $/, ''),
    role ?? '',
    family === undefined ? '' : `v${family}`,
    mtu === undefined ? '' : String(mtu),
    tool === undefined ? test.name : (what ?? ''),
    MARKS[test.result().state] + (retries > 0 ? `, attempt ${retries + 1}` : ''),
    new Date().toISOString().slice(0, 10),
  ];
}

export default class ResultTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.flatMap((module) => [...module.children.allTests()].map(rowOf));
    if (rows.length === 0) return;
    const widths = TITLES.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
    const print = (row: Row) =>
      row
        .map((text, i) => text.padEnd(widths[i]))
        .join('  ')
        .trimEnd();
    console.log(
      ['', print(TITLES), '-'.repeat(widths.reduce((a, b) => a + b + 2, -2)), ...rows.map(print), ''].join('\n'),
    );
    const file = process.env['INTEROP_TABLE'];
    if (file !== undefined)
      writeFileSync(file, markdown(merged(existsSync(file) ? readFileSync(file, 'utf8') : '', rows)));
  }
}

const HEAD = `|${TITLES.map(() => '---').join('|')}|`;
const line = (row: Row) => `| ${row.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
const cellOf = (row: Row) => row.slice(0, RESULT).join(' | ');

/** The rows of the document, with those of this run in their places; what this run skipped says nothing new. */
export function merged(document: string, run: readonly Row[]): Row[] {
  const lines = document.split('\n');
  const old = lines.includes(HEAD) ? lines.slice(lines.indexOf(HEAD) + 1).filter((text) => text.startsWith('| ')) : [];
  const rows = new Map(
    old.map((text): [string, Row] => {
      const row = text
        .slice(2, -2)
        .split(' | ')
        .map((field) => field.replaceAll('\\|', '|'));
      return [cellOf(row), row];
    }),
  );
  for (const row of run) {
    if (!rows.has(cellOf(row)) || row[RESULT] !== MARKS.skipped) rows.set(cellOf(row), row);
  }
  return [...rows.values()];
}

/** The document with these rows. */
export function markdown(rows: readonly Row[]): string {
  return [
    '# Results against real peers',
    '',
    'Written by `npm run interop:table`, which replaces the rows of the cells that it runs; what each row means stands in [interop.md](interop.md).',
    '',
    line(TITLES),
    HEAD,
    ...rows.map(line),
    '',
  ].join('\n');
}
