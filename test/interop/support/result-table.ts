/**
 * A vitest reporter: the matrix as a table {tool, our role, address family, path MTU, what, result}. Printed at the end of the suite, and
 * written as Markdown where INTEROP_TABLE names a file.
 */

import { writeFileSync } from 'node:fs';
import process from 'node:process';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import type { Cell } from './cell.js';

const TITLES = ['peer', 'our role', 'IP', 'MTU', 'what', 'result'] as const;
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
  ];
}

export default class ResultTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.flatMap((module) => [...module.children.allTests()].map(rowOf));
    if (rows.length === 0) return;
    const widths = TITLES.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
    const line = (row: Row) =>
      row
        .map((text, i) => text.padEnd(widths[i]))
        .join('  ')
        .trimEnd();
    console.log(
      ['', line(TITLES), '-'.repeat(widths.reduce((a, b) => a + b + 2, -2)), ...rows.map(line), ''].join('\n'),
    );
    const file = process.env['INTEROP_TABLE'];
    if (file !== undefined) writeFileSync(file, markdown(rows));
  }
}

function markdown(rows: readonly Row[]): string {
  const line = (row: Row) => `| ${row.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '# Results against real peers',
    '',
    'Written by `npm run interop:table`; what each row means stands in [interop.md](interop.md).',
    '',
    line(TITLES),
    `|${TITLES.map(() => '---').join('|')}|`,
    ...rows.map(line),
    '',
  ].join('\n');
}
