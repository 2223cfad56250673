import { availableParallelism } from 'node:os';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { reporters } from './vitest.report.js';
import { sources } from './vitest.sources.js';

/** Tests that start programs: each of them keeps two cores busy, and measures some of them. */
const PROGRAMS = ['test/e2e/**/*.test.ts', 'packages/kv/test/killed-owner.test.ts'];
/** Those of `npm test`: what most users do first. */
const FIRST_PROGRAMS = ['test/e2e/demo.test.ts'];
/** Tests that take long for what they prove: attackers, bundles, threads, live sockets, models and sweeps. */
const SLOW = ['{test,packages/*/test}/**/*.slow.test.ts'];

/**
 * Tests that need a process of their own: they replace its environment, timers, listeners, registered schemes or chosen native code, or measure its
 * memory.
 */
const ALONE = [
  'packages/extents/test/slow-cluster.test.ts',
  'packages/page/test/scenes.test.ts',
  'test/cm/agreed-parameters.test.ts',
  'test/core/crc32.test.ts',
  'test/dcqcn/rccc.test.ts',
  'test/driver/cipher-device.test.ts',
  'test/driver/crc32-device.test.ts',
  'test/driver/crc32c-choice.test.ts',
  'test/driver/populate.test.ts',
  'test/estats/command.test.ts',
  'test/estats/endpoint-server.test.ts',
  'test/extending/simulated.test.ts',
  'packages/kv/test/snapshot.test.ts',
  'test/qp/rate-control-window.test.ts',
  'test/shm-port/ring-batch.test.ts',
  'test/support/growth.test.ts',
];

/** Files that run side by side; without `isolate` those of one worker share its process and the modules that it has loaded. */
function sideBySide(
  name: string,
  include: string[],
  exclude: string[] = [],
  isolate = true,
): TestProjectInlineConfiguration {
  // Vitest would leave a core to itself.
  return {
    extends: true,
    test: { name, include, exclude, isolate, maxWorkers: availableParallelism(), sequence: { groupOrder: 1 } },
  };
}

/** Files that run one after another. */
function oneByOne(name: string, include: string[], exclude: string[] = []): TestProjectInlineConfiguration {
  return { extends: true, test: { name, include, exclude, sequence: { groupOrder: 2 } } };
}

/** Everything that needs only Node. `npm test` runs the projects quick-..., `npm run test:slow` the others; vitest.long.config.ts has the long suites. */
export default defineConfig({
  resolve: sources,
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...reporters('default'),
    projects: [
      sideBySide('quick-code', ['{test,packages/*/test}/**/*.test.ts'], [...PROGRAMS, ...SLOW, ...ALONE], false),
      sideBySide('quick-alone', ALONE),
      oneByOne('quick-programs', FIRST_PROGRAMS),
      sideBySide('slow-code', SLOW),
      oneByOne('programs', PROGRAMS, FIRST_PROGRAMS),
    ],
  },
});
