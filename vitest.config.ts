import { availableParallelism } from 'node:os';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { reporters } from './vitest.report.js';
import { sources } from './vitest.sources.js';

/** Tests that start programs: each of them keeps two cores busy, and measures some of them. */
const PROGRAMS = ['test/e2e/**/*.test.ts', 'packages/kv/test/killed-owner.test.ts'];
/** Those of `npm test`: what most users do first. */
const FIRST_PROGRAMS = ['demo', 'disk', 'examples', 'switch'].map((name) => `test/e2e/${name}.test.ts`);
/** Tests of attackers, bundles, real threads and sockets that take long for what they compute. */
const LASTING = [
  'test/attack/**/*.test.ts',
  'test/package/**/*.test.ts',
  'packages/cli/test/transport.test.ts',
  'test/docs/published-types.test.ts',
  'test/driver/worker-engine.test.ts',
  'test/extending/sockets.test.ts',
  'test/secure/contract.test.ts',
];

/** Files that run side by side. */
function sideBySide(name: string, include: string[], exclude: string[] = []): TestProjectInlineConfiguration {
  // Vitest would leave a core to itself.
  return {
    extends: true,
    test: { name, include, exclude, maxWorkers: availableParallelism(), sequence: { groupOrder: 1 } },
  };
}

/** Files that run one after another. */
function oneByOne(name: string, include: string[], exclude: string[] = []): TestProjectInlineConfiguration {
  return { extends: true, test: { name, include, exclude, sequence: { groupOrder: 2 } } };
}

/** Everything that needs only Node. `npm test` runs the projects quick-..., `npm run test:programs` the others; vitest.long.config.ts has the long suites. */
export default defineConfig({
  resolve: sources,
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...reporters('default'),
    projects: [
      sideBySide('quick-code', ['{test,packages/*/test}/**/*.test.ts'], [...PROGRAMS, ...LASTING]),
      oneByOne('quick-programs', FIRST_PROGRAMS),
      sideBySide('lasting-code', LASTING),
      oneByOne('programs', PROGRAMS, FIRST_PROGRAMS),
    ],
  },
});
