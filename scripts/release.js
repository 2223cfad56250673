// `npm run release`: checks everything that a release needs, and changes nothing. `npm run release -- --go` sets the tag after the checks. Publishing itself is the
// work of the host's CI, which alone can sign provenance.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';

const go = process.argv.includes('--go');
const withoutTests = process.argv.includes('--no-tests');
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
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
  'package.json says where the package comes from': () => {
    const missing = ['repository', 'homepage', 'bugs'].filter((field) => manifest[field] === undefined);
    if (manifest.publishConfig?.provenance !== true) missing.push('publishConfig.provenance');
    return missing.length === 0 ? undefined : `it lacks ${missing.join(', ')}: npm takes no provenance without them`;
  },
  'the tests pass': () => (withoutTests ? 'left out by --no-tests' : run('npm', 'test')),
  'npm publish --dry-run is content': () => {
    const { status, stderr } = spawnSync('npm', ['publish', '--dry-run'], { encoding: 'utf8' });
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
  console.log(`\nset the tag ${tag}: push it, and let CI run 'npm publish --provenance'`);
} else console.log(`\nready: 'npm run release -- --go' sets the tag ${tag}`);
