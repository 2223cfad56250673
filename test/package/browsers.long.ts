/** The simulator in a bundle of Vite for web pages. */

import { createContext, runInContext } from 'node:vm';
import type { simulate } from '@rocev2/lab/sim';
import { type Rolldown, build as vite } from 'vite';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';

const ENTRY = 'examples/entry-of-page.js';

/** Modules whose text is given, in the folder of the examples, which find the packages by their names. */
const given = (text: string) => ({
  name: 'given',
  resolveId: (id: string) => (id.endsWith(ENTRY) ? `${process.cwd()}/${ENTRY}` : undefined),
  load: (id: string) => (id.endsWith(ENTRY) ? text : undefined),
});

describe.runIf(isBuilt)('a bundle of Vite for a web page', () => {
  it('simulates without Node.js', async () => {
    const warnings: string[] = [];
    const result = await vite({
      configFile: false,
      logLevel: 'silent',
      plugins: [given("export { simulate } from '@rocev2/lab/sim';")],
      build: {
        write: false,
        minify: false,
        lib: { entry: ENTRY, formats: ['iife'], name: 'bundled' },
        rollupOptions: { onwarn: ({ message }) => warnings.push(message) },
      },
    });
    const [{ output }] = result as Rolldown.RolldownOutput[];
    expect(output).toHaveLength(1);
    expect(warnings).toEqual([]);
    const context = createContext({ TextEncoder, TextDecoder, Blob });
    runInContext(`${output[0].code}; globalThis.bundled = bundled;`, context);
    const { summary } = await (context['bundled'] as { simulate: typeof simulate }).simulate({
      name: 'page',
      duration: '200us',
      topology: { kind: 'pair' },
      flows: [{ kind: 'flows', from: 'h0', to: 'h1' }],
    });
    expect(summary.efficiency).toBeGreaterThan(0.9);
  }, 120_000);
});
