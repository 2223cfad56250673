import process from 'node:process';
import { defineConfig } from 'vitest/config';

// Continuous integration adds up the results of all suites; everybody else reads them.
const report = process.env['VITEST_JSON_FILE'];

/** The suite of `npm test`: everything that needs only Node. The long suites have vitest.long.config.ts. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    ...(report !== undefined && { reporters: ['default', ['json', { outputFile: report }]] }),
  },
});
