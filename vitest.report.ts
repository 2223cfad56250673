import process from 'node:process';

/** Reporters of a suite: for people, and, where continuous integration adds up all suites, a JSON file. */
export function reporters(forPeople: 'default' | 'dot'): {
  reporters: Array<string | [string, { outputFile: string }]>;
} {
  const file = process.env['VITEST_JSON_FILE'];
  return { reporters: file === undefined ? [forPeople] : [forPeople, ['json', { outputFile: file }]] };
}
