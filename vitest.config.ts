import { defineConfig } from 'vitest/config';
import { reporters } from './vitest.report.js';

/** The suite of `npm test`: everything that needs only Node. The long suites have vitest.long.config.ts. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    ...reporters('default'),
  },
});
