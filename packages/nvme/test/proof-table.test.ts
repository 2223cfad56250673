/** The table of proofs in docs/results.md is whole, and would show it if it were not. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { kernelOf, lacks, withShown } from './proof-table.js';
import { PROOF_TITLES, PROOFS, type Proof } from './proofs.js';

const RESULTS = new URL('../docs/results.md', import.meta.url);
const EMPTY = 'before\n<!-- From here on: written by `npm run nvme:table` -->\n<!-- Up to here -->\nbehind\n';
const TWO: readonly Proof[] = [
  { number: 1, test: 'a > b', kernels: ['6.1', '6.12'] },
  { number: 2, test: 'a > c', kernels: ['6.12'] },
];
const [OLD, NEW] = ['6.1.0-50-amd64', '6.12.95+deb12-amd64'];
const shown = (name: string, release: string, result: 'passed' | 'FAILED' = 'passed', day = '2026-11-26') => ({
  test: name,
  release,
  result,
  day,
});

test('the results have every proof, and none that failed', () => {
  // A cell that no run has filled is empty in the table, where everybody sees it.
  expect(lacks(readFileSync(RESULTS, 'utf8')).filter((lack) => !lack.endsWith(': not run'))).toEqual([]);
});

test('a row of the results that is lost is found, and so is each cell', () => {
  const results = readFileSync(RESULTS, 'utf8');
  const before = lacks(results);
  const lines = results.split('\n');
  for (const { test: name } of PROOFS) {
    const without = lines.filter((line) => !line.includes(`| ${name} |`));
    expect(without.length, name).toBe(lines.length - 1);
    const found = lacks(without.join('\n')).filter((lack) => !before.includes(lack));
    expect(found).toEqual([`no row: ${name}`]);
  }
});

test('each of the five has a title and tests, and no test is there twice', () => {
  expect([...new Set(PROOFS.map(({ number }) => number))]).toEqual(Object.keys(PROOF_TITLES).map(Number));
  expect(new Set(PROOFS.map(({ test: name }) => name)).size).toBe(PROOFS.length);
});

test('runs on one kernel after the other make one table; a failure stays until the test passes', () => {
  const first = withShown(EMPTY, [shown('a > b', OLD)], TWO);
  expect(lacks(first, TWO)).toEqual(['a > b on 6.12: not run', 'a > c on 6.12: not run']);
  const second = withShown(first, [shown('a > b', NEW, 'FAILED'), shown('a > c', NEW)], TWO);
  expect(lacks(second, TWO)).toEqual(['a > b on 6.12: FAILED 2026-11-26']);
  const third = withShown(second, [shown('a > b', NEW, 'passed', '2026-11-27')], TWO);
  expect(lacks(third, TWO)).toEqual([]);
  expect(third).toContain(`| proof | test | Linux ${OLD} | Linux ${NEW} |`);
  expect(third).toContain('| 1 | a > b | passed 2026-11-26 | passed 2026-11-27 |');
  expect(third).toMatch(/^before\n[\s\S]*\nbehind\n$/);
});

test('what is no proof any more leaves the table, and what is new has an empty cell for each kernel that is asked', () => {
  const table = withShown(EMPTY, [shown('a > b', OLD), shown('a > b', NEW)], TWO);
  const later = withShown(table, [], [{ number: 1, test: 'a > d', kernels: ['6.1'] }]);
  expect(later).not.toContain('a > b');
  expect(later).toContain('| 1 | a > d |  | - |');
});

test('a kernel without a column, and a document without a place, are refused', () => {
  expect(kernelOf('6.1.0')).toBe('6.1');
  expect(kernelOf('6.13.1')).toBeUndefined();
  expect(() => withShown(EMPTY, [shown('a > b', '6.13.1')], TWO)).toThrow('no column for Linux 6.13.1');
  expect(() => withShown('', [], TWO)).toThrow('no place');
});
