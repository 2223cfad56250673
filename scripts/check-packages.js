// `npm run packages`: packs every package, installs the tarballs into empty folders as a user would, and checks their size, their dependencies
// and their links. Needs a build and declarations. `npm run packages -- npm@10.8.2` does it with that npm.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { manifestOf, packageFolders } from './packages.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** What installing rocev2 alone brings, on linux-x64 and itself included. */
const PACKAGES_MAX = 9;
const UNPACKED_MAX_BYTES = 3e6;
const NOT_IN_THE_TRANSPORT = ['zod', 'commander', 'prom-client', 'hdr-histogram-js'];

const npms = process.argv.length > 2 ? process.argv.slice(2) : ['npm'];
const folder = mkdtempSync(join(tmpdir(), 'rocev2-packages-'));
const failures = [];

function npm(which, args, cwd) {
  const [command, ...first] = which === 'npm' ? ['npm'] : ['npx', '--yes', which];
  return execFileSync(command, [...first, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function check(ok, what) {
  if (!ok) failures.push(what);
}

function project(name) {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), '{ "private": true, "type": "module" }\n');
  return path;
}

/** Bundles and declarations that `exports` names and a tarball lacks. */
function missingTargets(from, paths) {
  const targets = Object.values(manifestOf(from).exports).flatMap((entry) =>
    [entry.types ?? [], entry.default ?? []].flat(),
  );
  return targets.filter((target) => {
    const [before, after = ''] = target.slice('./'.length).split('*');
    return !paths.some((path) => path.startsWith(before) && path.endsWith(after));
  });
}

/** Files that the README of a package links to and no tarball holds, pictures excepted. `packed`: paths in this repository. */
function missingLinks(from, packed) {
  const text = readFileSync(join(ROOT, from, 'README.md'), 'utf8');
  const links = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(([, path]) => posix.join(from, path));
  return links.filter((link) => !packed.has(link) && !/\.(?:png|svg)$/.test(link));
}

try {
  for (const which of npms) {
    const tarballs = [];
    const inTarballs = new Set();
    for (const from of packageFolders()) {
      const answer = JSON.parse(
        npm(which, ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], join(ROOT, from)),
      );
      const [packed] = Object.values(answer); // An array, or from npm 12 on an object by name.
      tarballs.push(join(folder, packed.filename));
      const paths = packed.files.map(({ path }) => path);
      for (const path of paths) inTarballs.add(`${from}${path}`);
      check(paths.includes('README.md'), `${packed.name} has no README.md`);
      const missing = missingTargets(from, paths);
      check(missing.length === 0, `${packed.name} exports ${missing.join(', ')}, which it lacks`);
      console.log(
        `${packed.name}: ${packed.files.length} files, ${(packed.unpackedSize / 1e6).toFixed(2)} MB unpacked`,
      );
      if (from === '')
        check(packed.unpackedSize <= UNPACKED_MAX_BYTES, `rocev2 unpacks to ${packed.unpackedSize} bytes`);
    }
    for (const from of packageFolders()) {
      const missing = missingLinks(from, inTarballs);
      check(missing.length === 0, `${from}README.md links to ${missing.join(', ')}, which no tarball holds`);
    }
    const alone = project(`alone-${npms.indexOf(which)}`);
    npm(which, ['install', '--no-audit', '--no-fund', tarballs[0]], alone);
    const installed = npm(which, ['ls', '--all', '--parseable'], alone).trim().split('\n').slice(1);
    console.log(`rocev2 alone installs ${installed.length} packages`);
    check(installed.length <= PACKAGES_MAX, `rocev2 alone installs ${installed.length}: ${installed.join(', ')}`);
    for (const name of NOT_IN_THE_TRANSPORT) {
      check(!existsSync(join(alone, 'node_modules', name)), `rocev2 alone brings ${name}`);
    }
    const all = project(`all-${npms.indexOf(which)}`);
    npm(which, ['install', '--no-audit', '--no-fund', ...tarballs], all);
    const said = execFileSync('npx', ['rocev2', '--version'], { cwd: all, encoding: 'utf8' }).trim();
    check(said === manifestOf('').version, `npx rocev2 --version says ${said}`);
    console.log(`all packages with ${which}: rocev2 --version says ${said}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const failure of failures) console.log(`wrong: ${failure}`);
if (failures.length > 0) process.exitCode = 1;
