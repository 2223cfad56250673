/** Entry points with the condition `browser`, in bundles for browsers: they need nothing of Node.js, and give the same packets. */

import { createContext, runInContext } from 'node:vm';
import { BUILT_IN_SCENARIOS, type ScenarioFile, simulate } from '@rocev2/lab/sim';
import { build } from 'esbuild';
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

async function exportsOf(contents: string): Promise<Record<string, unknown>> {
  const context = createContext({ ...GLOBALS });
  runInContext(await bundle(contents), context);
  return context['bundled'];
}

function short(name: string): ScenarioFile {
  return { ...BUILT_IN_SCENARIOS.find((scenario) => scenario.name === name)!, duration: '200us' };
}

describe.runIf(isBuilt)('a bundle for browsers', () => {
  it.each(ENTRIES)('of %s loads where there is no Node.js', async (entry) => {
    const names = Object.keys(await exportsOf(`export * from '${entry}';`));
    expect(names.length).toBeGreaterThan(0);
  });

  it('has the entries that documents name', () => {
    expect(ENTRIES.toSorted()).toEqual([
      '@rocev2/command/schema',
      '@rocev2/dashboard/internal/page',
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

  it('simulates the same packets as Node.js', async () => {
    const bundled = (await exportsOf("export { simulate } from '@rocev2/lab/sim';")) as { simulate: typeof simulate };
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
