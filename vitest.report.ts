import process from 'node:process';

/** Reporters of a suite: for people, more of its own, and, where continuous integration adds up all suites, a JSON file. */
export function reporters(
  forPeople: 'default' | 'dot',
  ...more: string[]
): { reporters: Array<string | [string, { outputFile: string }]> } {
  const file = process.env['VITEST_JSON_FILE'];
  return {
    reporters: [
      forPeople,
      ...more,
      ...(file === undefined ? [] : [['json', { outputFile: file }] as [string, { outputFile: string }]]),
    ],
  };
}
