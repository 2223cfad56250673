// `npm run declarations`, after `npm run typecheck`: copies the declarations that the entry points of each package reach into its `dist/types`.
// The compiler writes those of all files into .cache/types; what no entry point reaches is no part of a package.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifestOf, packageFolders } from './packages.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const WRITTEN = '.cache/types';

/** The declarations that a file imports from its own package, from the root of the repository. */
function neighboursOf(path) {
  const text = readFileSync(join(ROOT, WRITTEN, path), 'utf8');
  return [...text.matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g)].map(([, name]) =>
    normalize(join(dirname(path), `${name}.d.ts`)),
  );
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
  rmSync(join(ROOT, folder, 'dist/types'), { recursive: true, force: true });
  const copied = new Set();
  while (wanted.length > 0) {
    const path = wanted.pop();
    if (copied.has(path)) continue;
    copied.add(path);
    if (!existsSync(join(ROOT, WRITTEN, path))) throw new Error(`${path} is not there: run npm run typecheck`);
    cpSync(join(ROOT, WRITTEN, path), join(ROOT, folder, 'dist/types', path));
    wanted.push(...neighboursOf(path));
  }
}
