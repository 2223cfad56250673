/** Programs of users in bundles of Rollup, Vite and webpack, set up as docs/how-to/deploy.md says: the examples run, with the NIC inline and in a worker. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import commonjsPlugin from '@rollup/plugin-commonjs';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { rollup } from 'rollup';
import { build as vite } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import webpack, { type Configuration, type Stats } from 'webpack';
import { isBuilt } from '../e2e/executable.js';
import { projectWithPackage } from '../support/installed-package.js';
import { EXAMPLES, exampleText, type Format, run } from './programs.js';

/** The types of the plugin describe its form for CommonJS. */
const commonjs = commonjsPlugin as unknown as typeof commonjsPlugin.default;

/** Files to bundle by name, in a project that has the package installed, into a folder. */
interface Job {
  readonly project: string;
  readonly entries: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly format: Format;
}

const BUNDLERS: Readonly<Record<string, (job: Job) => Promise<void>>> = {
  Rollup: async ({ project, entries, folder, format }) => {
    const plugins = [nodeResolve({ preferBuiltins: true, rootDir: project }), commonjs()];
    await using bundle = await rollup({ input: { ...entries }, plugins, onwarn: () => {} });
    await bundle.write({ dir: folder, format });
  },
  Vite: async ({ project, entries, folder, format }) => {
    await vite({
      root: project,
      configFile: false,
      logLevel: 'silent',
      ssr: { noExternal: true, target: 'node' },
      build: {
        ssr: true,
        outDir: folder,
        emptyOutDir: false,
        rollupOptions: {
          input: { ...entries },
          output: { format, entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
        },
      },
    });
  },
  webpack: async ({ project, entries, folder, format }) => {
    const isModule = format === 'esm';
    const leftAlone = { createRequire: false, url: false, worker: false, ...(isModule && { importMeta: false }) };
    const stats = await runWebpack({
      mode: 'production',
      optimization: { minimize: false }, // It takes most of the time, and changes no meaning.
      target: 'node20',
      context: project,
      entry: { ...entries },
      output: { path: folder, filename: '[name].js', ...(isModule && { module: true, chunkFormat: 'module' }) },
      ...(isModule ? { experiments: { outputModule: true } } : { node: { __dirname: false, __filename: false } }),
      module: { parser: { javascript: leftAlone } },
    });
    expect(stats.toJson({ errors: true }).errors).toEqual([]);
  },
};

function runWebpack(configuration: Configuration): Promise<Stats> {
  return new Promise((resolve, reject) => {
    webpack(configuration, (error, stats) => (stats === undefined ? reject(error) : resolve(stats)));
  });
}

const CASES = Object.keys(BUNDLERS).flatMap((bundler) =>
  (['esm', 'cjs'] as const).map((format) => [bundler, format] as const),
);

describe.runIf(isBuilt)('a bundle', () => {
  let project: string;
  beforeAll(() => {
    project = projectWithPackage();
  }, 180_000);
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  describe.each(CASES)('of %s (%s)', (bundler, format) => {
    let folder: string;
    beforeAll(async () => {
      folder = join(project, `${bundler}-${format}`);
      mkdirSync(folder);
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: format === 'esm' ? 'module' : 'commonjs' }));
      const entries: Record<string, string> = { 'engine-thread': 'rocev2/engine-thread' };
      for (const [name] of EXAMPLES) {
        entries[name] = write(`${bundler}-${format}-${name}.js`, exampleText(name, format));
        const text = exampleText(name, format, workerOptions(bundler, format));
        entries[`${name}-worker`] = write(`${bundler}-${format}-${name}-worker.js`, text);
      }
      await BUNDLERS[bundler]({ project, entries, folder, format });
    }, 300_000);

    function write(name: string, text: string): string {
      writeFileSync(join(project, name), text);
      return join(project, name);
    }

    it.each(EXAMPLES)('runs examples/%s.js, with both engines', async (name, prints) => {
      for (const program of [name, `${name}-worker`]) {
        const { output, code } = await run(join(folder, `${program}.js`));
        expect(output, program).toMatch(prints);
        expect(code, program).toBe(0);
      }
    });
  });

  it('without its engine thread says what is missing: it is the file that the worker runs', async () => {
    const folder = join(project, 'without');
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    const source = join(project, 'without.js');
    writeFileSync(source, exampleText('hello', 'esm', "engine: 'worker'"));
    await BUNDLERS['Rollup']({ project, entries: { app: source }, folder, format: 'esm' });
    const { output, code } = await run(join(folder, 'app.js'));
    expect(output).toMatch(/ERR_ROCE_NOT_FOUND[\s\S]*rocev2\/engine-thread/);
    expect(code).not.toBe(0);
  });
});

/** webpack's CommonJS cannot say where its own file is, so that the program does. */
function workerOptions(bundler: string, format: Format): string {
  if (bundler !== 'webpack' || format === 'esm') return "engine: 'worker'";
  return "engine: 'worker', workerUrl: require('node:path').join(__dirname, 'engine-thread.js')";
}
