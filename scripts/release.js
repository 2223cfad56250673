// `npm run release`: checks everything that a release of all packages needs, and changes nothing. `npm run release -- --go` sets the tag after the
// checks. Publishing itself is the work of the host's CI, which alone can sign provenance.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { manifestOf, packageFolders } from './packages.js';

const go = process.argv.includes('--go');
const withoutTests = process.argv.includes('--no-tests');
const manifest = manifestOf('');
const manifests = packageFolders().map(manifestOf);
const tag = `v${manifest.version}`;
const output = (command, ...args) =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

/** Each check returns what is wrong, or undefined. */
const checks = {
  'the tree is clean': () => output('git', 'status', '--porcelain') || undefined,
  'the branch is main': () => {
    const branch = output('git', 'branch', '--show-current');
    return branch === 'main' ? undefined : `it is '${branch}'`;
  },
  [`CHANGELOG.md has ${manifest.version}`]: () => {
    const titles = readFileSync('CHANGELOG.md', 'utf8').match(/^## .*/gm) ?? [];
    const has = titles.some((title) => title.split(/\s+/)[1] === manifest.version);
    return has
      ? undefined
      : `write '## ${manifest.version}' over what is under '## Unreleased'; there is ${titles.join(', ')}`;
  },
  [`the tag ${tag} is new`]: () =>
    output('git', 'tag', '--list', tag) === '' ? undefined : 'raise the version in package.json',
  [`all packages have the version ${manifest.version}, and depend on each other at it`]: () => {
    const versions = manifests.flatMap(({ name, version, dependencies }) => {
      const ours = Object.entries(dependencies).filter(([name]) => name === 'rocev2' || name.startsWith('@rocev2/'));
      return [[name, version], ...ours.map(([on, at]) => [`${name} on ${on}`, at])];
    });
    const others = versions.filter(([, version]) => version !== manifest.version);
    return others.length === 0 ? undefined : others.map((pair) => pair.join(' ')).join(', ');
  },
  'each package.json says where the package comes from, and lets npm publish it': () => {
    const missing = manifests.flatMap(({ name, ...fields }) =>
      [
        ...['repository', 'homepage', 'bugs'].filter((field) => fields[field] === undefined),
        ...(fields.publishConfig?.provenance === true ? [] : ['publishConfig.provenance']),
        ...(fields.private === true ? ['anything but \'"private": true\''] : []),
      ].map((field) => `${name}: ${field}`),
    );
    return missing.length === 0 ? undefined : `missing: ${missing.join(', ')}; npm takes no provenance without them`;
  },
  'the tests pass': () => (withoutTests ? 'left out by --no-tests' : run('npm', 'test')),
  'all packages can be packed and installed': () =>
    run('npm', 'run', '--silent', 'build') ??
    run('npm', 'run', '--silent', 'declarations') ??
    run('npm', 'run', '--silent', 'packages'),
  'npm publish --dry-run is content': () => {
    const options = ['--dry-run', '--ignore-scripts', '--workspaces', '--include-workspace-root'];
    const { status, stderr } = spawnSync('npm', ['publish', ...options], { encoding: 'utf8' });
    const remarks = stderr
      .split('\n')
      .filter((line) => /^npm (warn|error)/i.test(line) && !/Unknown (env|user) config|logged in/.test(line));
    return status === 0 && remarks.length === 0 ? undefined : remarks.join('\n') || `it ended with ${status}`;
  },
};

function run(command, ...args) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  return status === 0 ? undefined : `${[command, ...args].join(' ')} ended with ${status}`;
}

let failures = 0;
for (const [promise, check] of Object.entries(checks)) {
  const wrong = check();
  console.log(`${wrong === undefined ? 'ok   ' : 'wrong'} ${promise}${wrong === undefined ? '' : `: ${wrong}`}`);
  if (wrong !== undefined) failures++;
}
if (failures > 0) {
  console.log(`\n${failures} of ${Object.keys(checks).length} checks failed; nothing was changed`);
  process.exitCode = 1;
} else if (go) {
  execFileSync('git', ['tag', '--annotate', tag, '--message', `rocev2 ${manifest.version}`], { stdio: 'inherit' });
  console.log(
    `\nset the tag ${tag}: push it, and let CI run 'npm publish --provenance --workspaces --include-workspace-root'`,
  );
} else console.log(`\nready: 'npm run release -- --go' sets the tag ${tag}`);
