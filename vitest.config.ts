import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { reporters } from './vitest.report.js';

/** Tests that start programs: each of them keeps two cores busy, and measures some of them. */
const PROCESSES = 'test/e2e/**/*.test.ts';

/** The suite of `npm test`: everything that needs only Node. The long suites have vitest.long.config.ts. */
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...reporters('default'),
    projects: [
      {
        extends: true,
        test: {
          name: 'code',
          include: ['test/**/*.test.ts'],
          exclude: [PROCESSES],
          maxWorkers: availableParallelism(), // Vitest would leave a core to itself.
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'processes', include: [PROCESSES], sequence: { groupOrder: 2 } },
      },
    ],
  },
});
