import { writeFileSync } from 'node:fs';
import process from 'node:process';
import type { SerializedError } from 'vitest';
import type { Reporter, Vitest } from 'vitest/node';

/** Reporters of a suite: for people, more of its own, and, where continuous integration adds up all suites, a JSON file. */
export function reporters(
  forPeople: 'default' | 'dot',
  ...more: string[]
): { reporters: Array<string | [string, { outputFile: string }] | Reporter> } {
  const file = process.env['VITEST_JSON_FILE'];
  return {
    reporters: [
      forPeople,
      ...more,
      ...(file === undefined
        ? []
        : [['json', { outputFile: file }] as [string, { outputFile: string }], runReporter(file)]),
    ],
  };
}

/** Writes what .ci/summary.mjs needs to run a failed test again, and the JSON report does not hold: NAME.run beside NAME.json. */
function runReporter(jsonFile: string): Reporter {
  let config = '';
  return {
    onInit({ vite }: Vitest): void {
      config = vite.config.configFile ?? '';
    },
    onTestRunEnd(_modules, unhandled: readonly SerializedError[]): void {
      const unhandledErrors = unhandled.map(({ name, message, VITEST_TEST_PATH: file }) => ({
        message: `${name}: ${message}`,
        ...(typeof file === 'string' ? { file } : {}),
      }));
      const run = { config, node: process.version, unhandledErrors };
      writeFileSync(`${jsonFile.replace(/\.json$/, '')}.run`, JSON.stringify(run));
    },
  };
}
