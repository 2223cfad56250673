// `npm run built`: a build, unless the last one is newer than everything that it is made of. Each suite of programs asks for one, and suites
// run side by side: a build would remove the bundles that another suite uses.
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageFolders } from './packages.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** What a build writes last. */
const STAMP = 'build/complete';

function sources() {
  const folders = packageFolders().map((folder) => `${folder}src`);
  const files = folders.flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  const manifests = packageFolders().map((folder) => `${folder}package.json`);
  return ['scripts/build.js', 'scripts/browser-modules.js', 'scripts/packages.js', ...manifests, ...folders, ...files];
}

function isFresh() {
  const built = statSync(`${ROOT}${STAMP}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return sources().every((path) => statSync(`${ROOT}${path}`).mtimeMs < built);
}

if (!isFresh()) execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: 'inherit' });
