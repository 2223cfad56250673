/** Every answer of docs/checklist.md names tests that exist, or gives a reason. */

import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const PAGE = 'docs/checklist.md';
const REASON = /(Open|Does not apply)[.:] ?/;

/** Answers of all tables `| question | components | answer |`. */
function answersOf(page: string): string[] {
  const rows = [...page.matchAll(/^\| ?(.*) \|$/gm)].map(([, row]) => row.split(' | ').map((cell) => cell.trim()));
  return rows.filter((row) => row.length >= 2 && row.at(-1) !== 'answer').map((row) => row.at(-1)!);
}

/** What is wrong with an answer; empty: nothing. */
function complaintsAbout(answer: string): string[] {
  const files = [...answer.matchAll(/`((?:test|packages)\/[^`]+)`/g)].map(([, file]) => file);
  if (files.length === 0 && !REASON.test(answer)) return ['no test and no reason'];
  return files.filter((file) => !existsSync(file)).map((file) => `${file} does not exist`);
}

describe(PAGE, () => {
  const answers = answersOf(readFileSync(PAGE, 'utf8'));

  it('answers each question with tests that exist or with a reason', () => {
    expect(answers.length).toBeGreaterThan(50);
    expect(answers.flatMap(complaintsAbout)).toEqual([]);
  });

  it('negative control: a missing file and an empty answer are found', () => {
    expect(complaintsAbout('`test/no/such.test.ts`')).toEqual(['test/no/such.test.ts does not exist']);
    expect(complaintsAbout('Yes.')).toEqual(['no test and no reason']);
    expect(complaintsAbout('Open.')).toEqual([]);
  });
});
