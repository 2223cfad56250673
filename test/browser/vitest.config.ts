import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from '../../vitest.report.js';
import { sources } from '../../vitest.sources.js';

/** The dashboard in a real browser: `npm run test:browser`. */
export default defineConfig({
  resolve: sources,
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['**/*.itest.ts'],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A simulation on a loaded machine.
    expect: { poll: { timeout: 30_000 } },
    ...reporters('default'),
  },
});
