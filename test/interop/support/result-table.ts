/**
 * A vitest reporter: the matrix as a table {peer, our role, address family, path MTU, what, result, day}, printed at the end of the suite.
 * INTEROP_TABLE names a JSON file of such rows: rows of this run replace those of the same cell there, and the others stay.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import type { Cell } from './cell.js';

const TITLES = {
  peer: 'peer',
  role: 'our role',
  ip: 'IP',
  mtu: 'MTU',
  what: 'what',
  result: 'result',
  day: 'day',
} as const;
const COLUMNS = Object.keys(TITLES) as ReadonlyArray<keyof typeof TITLES>;
const MARKS = { passed: 'passed', failed: 'FAILED', skipped: 'skipped', pending: 'not run' } as const;

export type Row = Readonly<Record<keyof typeof TITLES, string>>;

function rowOf(test: TestCase): Row {
  const cell: Partial<Cell> = test.meta().cell ?? {};
  const { tool, role, family, mtu, what } = cell;
  const retries = test.diagnostic()?.retryCount ?? 0;
  return {
    peer: tool ?? test.fullName.slice(0, test.fullName.length - test.name.length).replace(/ > $/, ''),
    role: role ?? '',
    ip: family === undefined ? '' : `v${family}`,
    mtu: mtu === undefined ? '' : String(mtu),
    what: tool === undefined ? test.name : (what ?? ''),
    result: MARKS[test.result().state] + (retries > 0 ? `, attempt ${retries + 1}` : ''),
    day: new Date().toISOString().slice(0, 10),
  };
}

export default class ResultTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.flatMap((module) => [...module.children.allTests()].map(rowOf));
    if (rows.length === 0) return;
    const widths = COLUMNS.map((name) => Math.max(TITLES[name].length, ...rows.map((row) => row[name].length)));
    const print = (row: Row) =>
      COLUMNS.map((name, i) => row[name].padEnd(widths[i]))
        .join('  ')
        .trimEnd();
    const rule = '-'.repeat(widths.reduce((a, b) => a + b + 2, -2));
    console.log(['', print(TITLES), rule, ...rows.map(print), ''].join('\n'));
    const file = process.env['INTEROP_TABLE'];
    if (file !== undefined)
      writeFileSync(file, json(merged(existsSync(file) ? readFileSync(file, 'utf8') : '[]', rows)));
  }
}

/** Which cell a row is about. */
const cellOf = ({ peer, role, ip, mtu, what }: Row) => [peer, role, ip, mtu, what].join('\n');

/** The rows of the file, with those of this run instead of older ones of the same cell; a skipped cell keeps its older row. */
export function merged(file: string, run: readonly Row[]): Row[] {
  const rows = new Map((JSON.parse(file) as Row[]).map((row) => [cellOf(row), row]));
  for (const row of run) {
    if (!rows.has(cellOf(row)) || row.result !== MARKS.skipped) rows.set(cellOf(row), row);
  }
  return [...rows.values()];
}

/** The file with these rows, one a line. */
export function json(rows: readonly Row[]): string {
  return `[\n${rows.map((row) => JSON.stringify(row)).join(',\n')}\n]\n`;
}
