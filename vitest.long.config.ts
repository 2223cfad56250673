import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { reporters } from './vitest.report.js';
import { sources } from './vitest.sources.js';

/** The long suites: `npm run test:sim` and `npm run test:fuzz` name the folder; one file is the unit that a core works on. */
export default defineConfig({
  resolve: sources,
  test: {
    include: ['{test,packages/*/test}/**/*.long.ts'],
    testTimeout: 600_000,
    hookTimeout: 60_000,
    maxWorkers: availableParallelism(), // Vitest would leave a core to itself.
    ...reporters('dot'),
  },
});
