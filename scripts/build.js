// `npm run build`: JavaScript of all packages, without type-checking (`npm run typecheck` does that, and writes declarations).
//
// Three forms come of the same sources:
// - `dist` of each package: its entry points, processes and threads as bundles that share their common code in further files. This is what
//   Node loads and what tarballs contain. Modules that exist twice would have their state twice, so each package is one build.
// - `dist/browser` of the transport: the entry points with a condition `browser`, and what packages for browsers use of `rocev2/internal/*`.
// - `build`: every module by itself, with a declaration that names its source. Benches, generators of documents and some tests import single
//   modules from there; nothing ships it.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { build, transformSync } from 'esbuild';
import { browserModules, nodeModulesIn } from './browser-modules.js';
import { manifestOf, packageFolders } from './packages.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SOURCE = '@rocev2/source';
/** Modules that the transport loads by their name, from beside the file that asks (src/core/optional-part.ts). */
const LOADED_BY_NAME = [
  'src/verbs/device-telemetry.ts',
  'src/driver/frame-ports.ts',
  'src/driver/shm-ports.ts',
  'src/driver/instrument-parts.ts',
  'src/driver/secure-ports.ts',
];
/**
 * By the name of a bundle: the modules of src/internal that are in it, as what they load is nearly the same. Code that bundles share is divided
 * further by each of them, and Node spends its time on the number of files. The others are internal-transport.
 */
const INTERNAL = {
  'internal-core': ['core'],
  'internal-packets': ['capture', 'packet', 'port'],
  'internal-storage': ['disk', 'nbd', 'storage-rpc'],
};
/**
 * Modules whose code is in files of its own, though every program has them where a bundle does not drop them: bundlers drop whole files that have no
 * effects, and not all tables in a file that is used.
 */
const APART = ['src/cm/connection-manager.ts'];
/** Files beside TypeScript that programs read at run time, and where bundles look for them. */
const PAGE = 'packages/dashboard/src/page';
const AGENT = 'packages/inspect/src/commands/conform/agent.c';

const { engines } = manifestOf('');
const COMMON = {
  absWorkingDir: ROOT,
  platform: 'node',
  target: `node${/\d+\.\d+/.exec(engines.node)[0]}`,
  format: 'esm',
  logLevel: 'warning',
};

function filesUnder(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
}

function sourcesOf(folder) {
  return filesUnder(`${folder}src`).filter((path) => path.endsWith('.ts') && !path.startsWith(PAGE));
}

function internalBundleOf(name) {
  return Object.keys(INTERNAL).find((bundle) => INTERNAL[bundle].includes(name)) ?? 'internal-transport';
}

/** By the name of its bundle: the modules of src/internal. */
function internalBundles(sources) {
  const names = sources.filter((path) => path.startsWith('src/internal/')).map((path) => basename(path, '.ts'));
  const bundles = new Map();
  for (const name of names) bundles.set(internalBundleOf(name), [...(bundles.get(internalBundleOf(name)) ?? []), name]);
  return bundles;
}

/** By the name of its bundle: the source of each entry point, process and thread. */
function entryPointsOf(folder) {
  const sources = sourcesOf(folder);
  const entries = {};
  for (const entry of Object.values(manifestOf(folder).exports)) {
    if (entry[SOURCE] === undefined || entry.default === undefined) continue;
    if (entry[SOURCE].includes('*')) {
      for (const name of internalBundles(sources).keys()) entries[name] = `${name}.virtual`;
    } else entries[basename(entry.default, '.js')] = join(folder, entry[SOURCE]);
  }
  for (const path of sources) {
    if (/-(?:process|thread)\.ts$/.test(path) || LOADED_BY_NAME.includes(path)) entries[basename(path, '.ts')] = path;
  }
  for (const path of sources.filter((path) => APART.includes(path))) entries[`apart-${basename(path, '.ts')}`] = path;
  if (folder === 'packages/cli/') entries.main = `${folder}src/main.ts`;
  return entries;
}

/**
 * Writes bundles without their imports of files from which they take nothing: the compiler keeps the order of modules by them, but package.json
 * says that these files do nothing else, so that Node would load them in vain, and bundlers of users would warn of each.
 */
function writeBundles({ outputFiles }) {
  for (const { path, text } of outputFiles) {
    if (basename(path).startsWith('apart-')) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text.replace(/^import "\.[^"]*\/shared-\w+\.js";\n/gm, ''));
  }
}

const internalModules = {
  name: 'internal-modules',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^internal-[a-z]+\.virtual$/ }, ({ path }) => ({ path, namespace: 'internal' }));
    onLoad({ filter: /.*/, namespace: 'internal' }, ({ path }) => {
      const names = internalBundles(sourcesOf('')).get(basename(path, '.virtual'));
      const contents = names.map((name) => `export * from './src/internal/${name}.ts';\n`).join('');
      return { contents, resolveDir: ROOT, loader: 'ts' };
    });
  },
};

/** dist/internal/NAME.js: what src/internal/NAME.ts exports, from its bundle. */
function writeInternalEntries() {
  mkdirSync(join(ROOT, 'dist/internal'));
  for (const [bundle, names] of internalBundles(sourcesOf(''))) {
    for (const name of names) {
      const { code } = transformSync(readFileSync(join(ROOT, `src/internal/${name}.ts`), 'utf8'), { loader: 'ts' });
      const text = code.replace(/ from "[^"]*";/g, ` from "../${bundle}.js";`);
      writeFileSync(join(ROOT, `dist/internal/${name}.js`), text);
    }
  }
}

async function bundle(folder) {
  const result = await build({
    ...COMMON,
    entryPoints: entryPointsOf(folder),
    outdir: `${folder}dist`,
    bundle: true,
    minifySyntax: true,
    splitting: true,
    chunkNames: 'shared-[hash]',
    packages: 'external',
    write: false,
    metafile: true,
    plugins: folder === '' ? [internalModules] : [],
  });
  rmSync(join(ROOT, folder, 'dist'), { recursive: true, force: true });
  writeBundles(result);
  if (folder === '') writeInternalEntries();
  return result;
}

/** By the name of a module of src/internal: what the bundles of packages take from it in browsers. */
function internalNamesInBrowsers(results) {
  const names = new Map();
  for (const [i, folder] of packageFolders().entries()) {
    if (folder === '') continue;
    const { outputFiles, metafile } = results[i];
    const texts = new Map(outputFiles.map(({ path, text }) => [relative(ROOT, path), text]));
    const files = Object.values(manifestOf(folder).exports).flatMap(({ browser }) =>
      browser === undefined ? [] : [join(folder, browser)],
    );
    for (const file of files) {
      for (const { path, external } of metafile.outputs[file].imports) if (!external) files.push(path);
      for (const [, list, name] of texts.get(file).matchAll(/import \{([^}]*)\} from "rocev2\/internal\/(\w+)"/g)) {
        const used = list.split(',').map((entry) => entry.trim().split(' as ')[0]);
        names.set(name, new Set([...(names.get(name) ?? []), ...used]));
      }
    }
  }
  return names;
}

async function browserBundle(results) {
  const internals = internalNamesInBrowsers(results);
  const entryPoints = {};
  for (const { browser, [SOURCE]: source } of Object.values(manifestOf('').exports)) {
    if (browser !== undefined && !browser.includes('*')) entryPoints[basename(browser, '.js')] = source;
  }
  for (const name of internals.keys()) entryPoints[`internal/${name}`] = `${name}.internal`;
  const internalsInBrowsers = {
    name: 'internals-in-browsers',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\w+\.internal$/ }, ({ path }) => ({ path, namespace: 'internal' }));
      onLoad({ filter: /.*/, namespace: 'internal' }, ({ path }) => {
        const name = basename(path, '.internal');
        const contents = `export { ${[...internals.get(name)].sort().join(', ')} } from './src/internal/${name}.ts';`;
        return { contents, resolveDir: ROOT, loader: 'ts' };
      });
    },
  };
  const result = await build({
    ...COMMON,
    platform: 'browser',
    target: 'es2022',
    entryPoints,
    outdir: 'dist/browser',
    bundle: true,
    minify: true, // What a page bundles has no stack that a reader looks up, and the tarball is limited.
    splitting: true,
    chunkNames: 'shared-[hash]',
    external: ['tinyqueue', 'pure-rand', 'p-queue'],
    metafile: true,
    write: false,
    plugins: [internalsInBrowsers, browserModules],
  });
  const left = nodeModulesIn(result.metafile);
  if (left.length > 0) throw new Error(`dist/browser needs Node.js: ${left.join('; ')}`);
  writeBundles(result);
  return result;
}

/** What a specifier of another package stands for in `build`. */
function moduleOf(specifier) {
  const [, name, entry = ''] = /^((?:@rocev2\/)?[^/]+)(?:\/(.+))?$/.exec(specifier);
  const folder = name === 'rocev2' ? '' : `packages/${name.slice('@rocev2/'.length)}/`;
  const { exports } = manifestOf(folder);
  const found =
    exports[entry === '' ? '.' : `./${entry}`] ?? (entry.startsWith('internal/') && exports['./internal/*']);
  if (!found) return undefined; // The text of an example or a hint.
  return join('build', folder, found[SOURCE].replace('*', entry.replace('internal/', '')).replace(/\.ts$/, '.js'));
}

const oneModuleEach = {
  name: 'one-module-each',
  setup({ onLoad }) {
    const modules = new Map();
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const from = join('build', dirname(relative(ROOT, path)));
      const contents = readFileSync(path, 'utf8').replace(
        /(?<=(?:from |import\()')(?:@rocev2\/|rocev2(?=['/]))[^']*(?=')/g,
        (specifier) => {
          if (!modules.has(specifier)) modules.set(specifier, moduleOf(specifier));
          const module = modules.get(specifier);
          return module === undefined ? specifier : relative(from, module).replace(/^(?!\.)/, './');
        },
      );
      return { contents, loader: 'ts' };
    });
  },
};

async function modules() {
  for (const folder of packageFolders()) {
    rmSync(join(ROOT, 'build', folder, 'src'), { recursive: true, force: true });
    if (folder === '') continue;
    mkdirSync(join(ROOT, 'build', folder), { recursive: true });
    copyFileSync(join(ROOT, folder, 'package.json'), join(ROOT, 'build', folder, 'package.json'));
  }
  const sources = packageFolders().flatMap(sourcesOf);
  const result = await build({
    ...COMMON,
    entryPoints: sources,
    outdir: 'build',
    outbase: '.',
    plugins: [oneModuleEach],
  });
  for (const path of sources) {
    const source = relative(join('build', dirname(path)), path).replace(/\.ts$/, '.js');
    writeFileSync(join(ROOT, 'build', path.replace(/\.ts$/, '.d.ts')), `export * from '${source}';\n`);
  }
  return result;
}

async function page() {
  const result = await build({
    ...COMMON,
    entryPoints: [`${PAGE}/main.ts`],
    outfile: 'packages/dashboard/dist/page/main.js',
    bundle: true,
    minify: true,
    platform: 'browser',
    target: 'es2022',
    conditions: [SOURCE],
  });
  for (const name of ['index.html', 'style.css'])
    copyFileSync(join(ROOT, PAGE, name), join(ROOT, 'packages/dashboard/dist/page', name));
  return result;
}

const results = await Promise.all([...packageFolders().map(bundle), modules()]);
results.push(await browserBundle(results), await page());
copyFileSync(join(ROOT, AGENT), join(ROOT, 'packages/inspect/dist/agent.c'));
copyFileSync(join(ROOT, AGENT), join(ROOT, 'build', AGENT));
mkdirSync(join(ROOT, 'build/packages/dashboard/dist'), { recursive: true });
cpSync(join(ROOT, 'packages/dashboard/dist/page'), join(ROOT, 'build/packages/dashboard/dist/page'), {
  recursive: true,
});
chmodSync(join(ROOT, 'packages/cli/bin/rocev2.js'), 0o755);
if (results.some(({ warnings }) => warnings.length > 0)) process.exitCode = 1;
else writeFileSync(join(ROOT, 'build/complete'), ''); // scripts/build-if-changed.js
