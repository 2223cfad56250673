import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from './vitest.report.js';
import { sources } from './vitest.sources.js';

const ROOT = fileURLToPath(new URL('.', import.meta.url));

/** Quick tests that repeat their proofs more often here (test/support/repetitions.ts). */
const FOLDERS = ['test', ...readdirSync(`${ROOT}packages`).map((name) => `packages/${name}/test`)];
const REPEATED = FOLDERS.flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
)
  .filter((file) => file.endsWith('.test.ts'))
  .filter((file) => readFileSync(`${ROOT}${file}`, 'utf8').includes('/support/repetitions.js'));

/** The long suites: `npm run test:sim` and `npm run test:fuzz` name the folder; one file is the unit that a core works on. */
export default defineConfig({
  resolve: sources,
  test: {
    include: ['{test,packages/*/test}/**/*.long.ts', ...REPEATED],
    env: { LONG_SUITE: '1' },
    testTimeout: 600_000,
    hookTimeout: 60_000,
    maxWorkers: availableParallelism(), // Vitest would leave a core to itself.
    ...reporters('dot'),
  },
});
