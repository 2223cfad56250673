// `npm run built`: a build, unless the last one is newer than everything that it is made of. `npm test` and each suite of programs ask for one, and
// suites may run beside each other: a build would take the bundle away from under the others.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** What a build is made of, and what it makes last. */
const SOURCES = [
  'src',
  'packages',
  'scripts',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'tsconfig.page.json',
];
const LAST_OF_BUILD = 'dist/bundle/index.js';

/** Folders within the sources that no build reads. */
const OTHERS = /(^|[\\/])(node_modules|dist|test|docs)([\\/]|$)/;

function isFresh() {
  const built = statSync(`${ROOT}${LAST_OF_BUILD}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return SOURCES.filter((source) => existsSync(`${ROOT}${source}`)).every((source) => {
    const path = `${ROOT}${source}`;
    const within = statSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [];
    const files = within.filter((file) => !OTHERS.test(file)).map((file) => `${path}/${file}`);
    return [path, ...files].every((file) => statSync(file).mtimeMs < built);
  });
}

if (!isFresh()) execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: 'inherit' });
