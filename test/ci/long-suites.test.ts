/** Each long test belongs to a suite that `.ci/run` runs. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const LONG_CONFIG = 'vitest.long.config.ts';

/** In two parts: this file repeats nothing. */
const REPETITIONS = ['/support', 'repetitions.js'].join('/');

/** Path filters of the long suites. */
function filters(): string[] {
  const scripts: Record<string, string> = JSON.parse(readFileSync('package.json', 'utf8')).scripts;
  const run = readFileSync('.ci/run', 'utf8');
  return Object.entries(scripts)
    .filter(([name, command]) => command.includes(`${LONG_CONFIG} `) && run.includes(`npm run --silent ${name}\n`))
    .flatMap(([, command]) => command.slice(command.indexOf(LONG_CONFIG) + LONG_CONFIG.length + 1).split(' '));
}

function longTests(): string[] {
  return ['test', 'packages']
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`))
    .filter((name) => !name.includes('node_modules/') && !name.includes('dist/'))
    .filter((name) => name.endsWith('.long.ts') || isRepeated(name));
}

/** A quick test with more repetitions in its long suite. */
function isRepeated(name: string): boolean {
  return name.endsWith('.test.ts') && readFileSync(name, 'utf8').includes(REPETITIONS);
}

it('a long suite of CI has each long test', () => {
  const paths = filters();
  const all = longTests();
  expect(all).toContain('test/verbs/every-parameter.long.ts');
  expect(all.filter((name) => !paths.some((path) => name.includes(path)))).toEqual([]);
});
