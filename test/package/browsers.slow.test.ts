/** Entry points with the condition `browser`, in bundles for browsers: they need nothing of Node.js, and give the same packets. */

import { join } from 'node:path';
import process from 'node:process';
import { createContext, runInContext } from 'node:vm';
import { BUILT_IN_SCENARIOS, type ScenarioFile, simulate } from '@rocev2/lab/sim';
import { build } from 'esbuild';
import { type Rolldown, build as vite } from 'vite';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { manifestOfPackage, PACKAGE_FOLDERS } from '../support/installed-package.js';

const ENTRIES = PACKAGE_FOLDERS.map((folder) => manifestOfPackage(folder)).flatMap(({ name, exports }) =>
  Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'object' && 'browser' in target && !entry.includes('*') ? [`${name}${entry.slice(1)}`] : [],
  ),
);
/** What browsers have of what the engine uses. */
const GLOBALS = { TextEncoder, TextDecoder, Blob };

const BUNDLERS = {
  esbuild: bundle,
  Vite: async (contents: string): Promise<string> => {
    const entry = join(process.cwd(), 'examples/entry-of-test.js'); // Is not there.
    const plugin = {
      name: 'entry',
      enforce: 'pre' as const,
      resolveId: (id: string) => (id === entry ? id : undefined),
      load: (id: string) => (id === entry ? contents : undefined),
    };
    const output = await vite({
      configFile: false,
      logLevel: 'silent',
      plugins: [plugin],
      build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'bundled' } },
    });
    return (output as Rolldown.RolldownOutput[])[0].output[0].code;
  },
} as const;
const BUNDLER_NAMES = Object.keys(BUNDLERS) as ReadonlyArray<keyof typeof BUNDLERS>;

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: 'examples' },
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'bundled',
    write: false,
    logLevel: 'silent',
  });
  return outputFiles[0].text;
}

async function exportsOf(
  contents: string,
  bundler: keyof typeof BUNDLERS = 'esbuild',
): Promise<Record<string, unknown>> {
  const context = createContext({ ...GLOBALS });
  runInContext(await BUNDLERS[bundler](contents), context);
  return context['bundled'];
}

function short(name: string): ScenarioFile {
  return { ...BUILT_IN_SCENARIOS.find((scenario) => scenario.name === name)!, duration: '200us' };
}

describe.runIf(isBuilt)('a bundle for browsers', () => {
  it.each(ENTRIES.flatMap((entry) => BUNDLER_NAMES.map((bundler) => [entry, bundler] as const)))(
    'of %s by %s loads where there is no Node.js',
    async (entry, bundler) => {
      const names = Object.keys(await exportsOf(`export * from '${entry}';`, bundler));
      expect(names.length).toBeGreaterThan(0);
    },
  );

  it('has the entries that documents name', () => {
    expect(ENTRIES.toSorted()).toEqual([
      '@rocev2/command/plot',
      '@rocev2/command/schema',
      '@rocev2/inspect',
      '@rocev2/inspect/internal/page',
      '@rocev2/lab/fluid',
      '@rocev2/lab/internal/page',
      '@rocev2/lab/sim',
      '@rocev2/lab/switch',
      '@rocev2/page/scenes',
      'rocev2/congestion',
      'rocev2/packet',
      'rocev2/window',
    ]);
  });

  it.each(BUNDLER_NAMES)('of %s simulates the same packets as Node.js', async (bundler) => {
    const bundled = (await exportsOf("export { simulate } from '@rocev2/lab/sim';", bundler)) as {
      simulate: typeof simulate;
    };
    for (const name of ['livelock-go-back-n', 'livelock-go-back-0']) {
      const { traceHash, packetEvents } = await bundled.simulate(short(name));
      expect(packetEvents).toBeGreaterThan(1000);
      expect(traceHash).toBe((await simulate(short(name))).traceHash);
    }
  });

  it('shares registered rate controls between its entries', async () => {
    const { named } = (await exportsOf(`
      import { RateControl, registerRateControl } from 'rocev2/congestion';
      import { simulate } from '@rocev2/lab/sim';
      registerRateControl({ name: 'unlimited', summary: 'none', isPaced: false, parameters: {}, create: () => new RateControl() });
      export const named = (file) => simulate({ ...file, nic: { cc: 'unlimited' } });`)) as { named: typeof simulate };
    expect((await named(short('livelock-go-back-n'))).packetEvents).toBeGreaterThan(1000);
  });

  it('of the entry for sockets says that it needs Node.js', async () => {
    await expect(bundle("export { openDevice } from 'rocev2';")).rejects.toThrow(/node:/);
  });
});
