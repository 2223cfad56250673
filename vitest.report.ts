import { writeFileSync } from 'node:fs';
import process from 'node:process';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule, Vitest } from 'vitest/node';

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
    onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
      const unfinished = modules.filter((module) => ['pending', 'queued'].includes(module.state()));
      const unhandledErrors = unhandled.flatMap(({ name, message, VITEST_TEST_PATH: file }) => {
        const error = { message: `${name}: ${message}` };
        if (typeof file === 'string') return [{ ...error, file }];
        // The process of a worker has ended: the files that it has not finished have no results.
        if (/Worker .*(?:emitted error|exited)/.test(message) && unfinished.length > 0)
          return unfinished.map(({ moduleId }) => ({ ...error, file: moduleId }));
        return [error];
      });
      const run = { config, node: process.version, unhandledErrors };
      writeFileSync(`${jsonFile.replace(/\.json$/, '')}.run`, JSON.stringify(run));
    },
  };
}
