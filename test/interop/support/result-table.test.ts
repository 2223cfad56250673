import { expect, test } from 'vitest';
import { markdown, merged } from './result-table.js';

const ROW = ['rping', 'client', 'v4', '1024', 'a | b', 'passed', '2026-11-01'];
const OTHER = ['rping', 'server', '', '', '', 'passed', '2026-11-01'];
const later = (row: readonly string[], result: string) => [...row.slice(0, 5), result, '2026-11-02'];

test('a run replaces the rows of its cells, adds new ones, and leaves the others', () => {
  const added = ['udaddy', 'client', 'v6', '', '', 'passed', '2026-11-02'];
  expect(merged(markdown([ROW, OTHER]), [later(ROW, 'FAILED'), added])).toEqual([later(ROW, 'FAILED'), OTHER, added]);
});

test('what a run skips says nothing new, unless there was no row', () => {
  expect(merged(markdown([ROW]), [later(ROW, 'skipped'), later(OTHER, 'skipped')])).toEqual([
    ROW,
    later(OTHER, 'skipped'),
  ]);
});

test('a document of another shape is replaced', () => {
  expect(merged('| peer | result |\n|---|---|\n| rping | passed |', [ROW])).toEqual([ROW]);
});
