import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { reporters } from '../../../vitest.report.js';
import { sources } from '../../../vitest.sources.js';

/** NVMe over Fabrics against the Linux kernel in QEMU: `npm run test:nvme`. */
export default defineConfig({
  resolve: sources,
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['**/*.itest.ts'],
    globalSetup: ['../../../test/interop/support/prepare-rig.ts'],
    // Emulated processors want real ones to themselves.
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    ...reporters('default', fileURLToPath(new URL('./proof-reporter.js', import.meta.url))),
  },
});
