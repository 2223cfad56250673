import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from '../../vitest.report.js';
import { sources } from '../../vitest.sources.js';

/** The suite against real Linux peers: `npm run test:interop`. */
export default defineConfig({
  resolve: sources,
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['**/*.itest.ts'],
    globalSetup: ['support/prepare-rig.ts'],
    // Emulated processors want real ones to themselves: a second rig at the same time costs more than it gains.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 240_000,
    ...reporters('default', fileURLToPath(new URL('./support/result-table.js', import.meta.url))),
  },
});
