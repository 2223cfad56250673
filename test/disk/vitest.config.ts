import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from '../../vitest.report.js';
import { sources } from '../../vitest.sources.js';

/** The suite of disks under the programs people use them with: `npm run test:disk`. */
export default defineConfig({
  resolve: sources,
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['**/*.itest.ts'],
    globalSetup: ['support/install-tools.ts'],
    // One chain of processes at a time has the processors to itself.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    ...reporters('default'),
  },
});
