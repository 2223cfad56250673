// `npm run declarations`, after `npm run typecheck`: copies the declarations that the entry points of each package reach into its `dist/types`.
// The compiler writes those of all files into .cache/types; what no entry point reaches is no part of a package.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifestOf, packageFolders } from './packages.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const WRITTEN = '.cache/types';

/** Relative specifiers in declarations. */
const RELATIVE = /(?<=(?:from |import\()(['"]))(\.[^'"]+)\.js(?=\1)/g;

function packageOf(path) {
  return packageFolders().findLast((folder) => path.startsWith(folder));
}

/** What a file outside of its package is to programs: an entry point of another one. The compiler writes paths for types that it infers. */
function specifierOf(path) {
  const folder = packageOf(path);
  const { name, exports } = manifestOf(folder);
  for (const [entry, { types = '' }] of Object.entries(exports)) {
    const file = types.replace('./dist/types/', '').replace('*', basename(path, '.d.ts'));
    if (file === path) return `${name}${entry.slice(1).replace('*', basename(path, '.d.ts'))}`;
  }
  throw new Error(`${path} is no entry point of ${name}, and another package names it`);
}

/** Comments of declarations. */
const COMMENT = /^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm;
/** What a declaration exports of another file. */
const EXPORTED_FROM = /^export (?:type )?(?:\{[^}]*\}|\*) from ['"](\.[^'"]+)\.js['"]/gm;

const fileOf = (path, name) => normalize(join(dirname(path), `${name}.d.ts`));

function textOf(path) {
  if (!existsSync(join(ROOT, WRITTEN, path))) throw new Error(`${path} is not there: run npm run typecheck`);
  return readFileSync(join(ROOT, WRITTEN, path), 'utf8');
}

/** The declarations whose names these export. */
function withExported(paths) {
  const all = new Set(paths);
  for (const path of all) for (const [, name] of textOf(path).matchAll(EXPORTED_FROM)) all.add(fileOf(path, name));
  return all;
}

/** First in the declaration of each entry point: the compiler names these types where they are missing. */
const NODE_TYPES = '/// <reference types="node" />\n';

/** Copies a declaration. Returns those that it imports from its own package, as paths from the root of the repository. */
function copyDeclaration(folder, path, { isEntry, hasComments }) {
  const neighbours = [];
  const text = textOf(path).replace(RELATIVE, (specifier, _, name) => {
    const neighbour = fileOf(path, name);
    if (packageOf(neighbour) !== folder) return specifierOf(neighbour);
    neighbours.push(neighbour);
    return specifier;
  });
  const to = join(ROOT, folder, 'dist/types', path);
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, (isEntry ? NODE_TYPES : '') + (hasComments ? text : text.replace(COMMENT, '')));
  return neighbours;
}

function entryPointsOf(folder) {
  const types = Object.values(manifestOf(folder).exports).flatMap((entry) => entry.types ?? []);
  const files = types.map((path) => path.replace('./dist/types/', ''));
  const pattern = files.find((path) => path.includes('*'));
  if (pattern === undefined) return files;
  const modules = readdirSync(join(ROOT, 'src/internal')).map((name) =>
    pattern.replace('*', name.slice(0, -'.ts'.length)),
  );
  return [...files.filter((path) => path !== pattern), ...modules];
}

for (const folder of packageFolders()) {
  const wanted = entryPointsOf(folder);
  const entries = new Set(wanted);
  // Programs see the comments of what public entry points export; the tarball is limited.
  const documented = withExported(wanted.filter((path) => !path.startsWith('src/internal/')));
  rmSync(join(ROOT, folder, 'dist/types'), { recursive: true, force: true });
  const copied = new Set();
  while (wanted.length > 0) {
    const path = wanted.pop();
    if (copied.has(path)) continue;
    copied.add(path);
    wanted.push(...copyDeclaration(folder, path, { isEntry: entries.has(path), hasComments: documented.has(path) }));
  }
}
