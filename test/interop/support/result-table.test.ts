import { expect, test } from 'vitest';
import { json, merged } from './result-table.js';

const ROW = {
  peer: 'rping',
  role: 'client',
  ip: 'v4',
  mtu: '1024',
  what: 'a | b',
  result: 'passed',
  day: '2026-11-01',
};
const OTHER = { ...ROW, role: 'server', ip: '', mtu: '', what: '' };
const later = (row: typeof ROW, result: string) => ({ ...row, result, day: '2026-11-02' });

test('a run replaces the rows of its cells, adds new ones, and leaves the others', () => {
  const added = { ...ROW, peer: 'udaddy', ip: 'v6', day: '2026-11-02' };
  expect(merged(json([ROW, OTHER]), [later(ROW, 'FAILED'), added])).toEqual([later(ROW, 'FAILED'), OTHER, added]);
});

test('what a run skips says nothing new, unless there was no row', () => {
  expect(merged(json([ROW]), [later(ROW, 'skipped'), later(OTHER, 'skipped')])).toEqual([ROW, later(OTHER, 'skipped')]);
});
