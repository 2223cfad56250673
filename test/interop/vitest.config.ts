import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The suite against real Linux peers: `npx vitest run --config test/interop/vitest.config.ts`. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['**/*.itest.ts'],
    globalSetup: ['support/prepare-rig.ts'],
    // Emulated processors want real ones to themselves: a second rig at the same time costs more than it gains.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 240_000,
  },
});
