// The entry points of the package as Node loads them: bundled, with what they share in common files, in dist/bundle. Reading 230 small files takes most of the time of an import
// (docs/packaging.md). The modules in dist stay: bundlers of users take them by the condition `module` of package.json and leave out what a program does not use; types and commands
// are there, too.
import { readFileSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../', import.meta.url));
const { exports, engines } = JSON.parse(readFileSync(new URL('package.json', `file://${root}`), 'utf8'));
const bundled = Object.values(exports).filter((entry) => entry.module !== undefined);
/** What the library loads by its name, from beside the file that asks (core/optional-part.ts). */
const LOADED_BY_NAME = {
  'device-telemetry': 'dist/verbs/device-telemetry.js',
  'frame-ports': 'dist/driver/frame-ports.js',
  'shm-ports': 'dist/driver/shm-ports.js',
  'instrument-parts': 'dist/driver/instrument-parts.js',
  'secure-ports': 'dist/driver/secure-ports.js',
};

rmSync(`${root}dist/bundle`, { recursive: true, force: true });
const { warnings } = await build({
  entryPoints: {
    ...Object.fromEntries(bundled.map((entry) => [basename(entry.default, '.js'), entry.module])),
    ...LOADED_BY_NAME,
  },
  absWorkingDir: root,
  outdir: 'dist/bundle',
  bundle: true,
  splitting: true,
  chunkNames: 'shared-[hash]',
  packages: 'external',
  platform: 'node',
  target: `node${/\d+\.\d+/.exec(engines.node)[0]}`,
  format: 'esm',
  sourcemap: true,
  logLevel: 'warning',
});
// A thread of two small modules. As an entry beside the others it would cut what they share into more files.
const thread = await build({
  entryPoints: ['dist/extents/live/coding-thread.js'],
  absWorkingDir: root,
  outdir: 'dist/bundle',
  bundle: true,
  platform: 'node',
  target: `node${/\d+\.\d+/.exec(engines.node)[0]}`,
  format: 'esm',
  sourcemap: true,
  logLevel: 'warning',
});
warnings.push(...thread.warnings);
if (warnings.length > 0) process.exitCode = 1;
