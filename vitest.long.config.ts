import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from './vitest.report.js';

const ROOT = fileURLToPath(new URL('.', import.meta.url));

/** Quick tests that repeat their proofs more often here (test/support/repetitions.ts). */
const REPEATED = readdirSync(`${ROOT}test`, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => `test/${file}`)
  .filter((file) => readFileSync(`${ROOT}${file}`, 'utf8').includes('/support/repetitions.js'));

/** The long suites: `npm run test:sim` and `npm run test:fuzz` name the folder; one file is the unit that a core works on. */
export default defineConfig({
  test: {
    include: ['test/**/*.long.ts', ...REPEATED],
    env: { LONG_SUITE: '1' },
    testTimeout: 600_000,
    hookTimeout: 60_000,
    maxWorkers: availableParallelism(), // Vitest would leave a core to itself.
    ...reporters('dot'),
  },
});
