/** The end of `.ci/run`: the command .ci/summary.mjs over reports of suites. A program called `npx` stands for the reruns. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Run } from '../../.ci/flaky.mjs';

/** Passes every test, and writes what it was called with; one whose name has `broken` fails, with `absent` it is not found. */
const STAND_IN = `#!${process.execPath}
const { appendFileSync, writeFileSync } = require('node:fs');
const name = process.argv.at(-1);
appendFileSync(__dirname + '/calls', name + '\\n');
const failed = name.includes('broken') ? 1 : 0;
const passed = name.includes('absent') ? 0 : 1 - failed;
const report = { success: failed === 0, numPassedTests: passed, numFailedTests: failed, testResults: [] };
writeFileSync(process.env.VITEST_JSON_FILE, JSON.stringify(report));
process.exit(failed);
`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'summary-'));
  writeFileSync(join(folder, 'npx'), STAND_IN, { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A suite with five tests that pass, one that is skipped, and these that fail. */
function suite(
  name: string,
  failing: string[],
  { file = 'test/cm/a.test.ts', unhandledErrors = [] as Run['unhandledErrors'] } = {},
) {
  const assertionResults = failing.map((fullName) => ({
    fullName,
    status: 'failed',
    failureMessages: [`first output of ${fullName}`],
  }));
  const status = failing.length > 0 ? 'failed' : 'passed';
  const testResults = [{ name: resolve(file), status, message: '', assertionResults }];
  const counts = { numPassedTests: 5, numFailedTests: failing.length, numPendingTests: 1 };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...counts, success: status === 'passed', testResults }));
  const run = { config: 'vitest.config.ts', node: process.version, unhandledErrors };
  writeFileSync(join(folder, `${name}.run`), JSON.stringify(run));
}

/** What the command prints, its last line, its code, and the names of tests that it ran again. */
function summary(...failedSteps: string[]) {
  const { stdout, status } = spawnSync(process.execPath, ['.ci/summary.mjs', folder, '3', ...failedSteps], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env['PATH']}` },
  });
  const calls = readdirSync(folder).includes('calls') ? readFileSync(join(folder, 'calls'), 'utf8').trim() : '';
  return { stdout, last: stdout.trim().split('\n').at(-1), status, reruns: calls === '' ? [] : calls.split('\n') };
}

it('is green without failures', () => {
  suite('test', []);
  expect(summary()).toMatchObject({ last: '8 passed, 0 failed, 1 skipped', status: 0, reruns: [] });
});

it('stays green with two flaky tests, which it prints with their first output', () => {
  suite('test', ['one']);
  suite('kv', ['two']);
  const { stdout, last, status, reruns } = summary('test', 'kv');
  expect(stdout).toContain('flaky: test/cm/a.test.ts: one\n    first output of one');
  expect(stdout).toContain('flaky: test/cm/a.test.ts: two\n    first output of two');
  expect({ last, status }).toEqual({ last: '17 passed, 0 failed, 2 skipped', status: 0 });
  expect(reruns.sort()).toEqual(['^one$', '^one$', '^two$', '^two$']);
});

it('is red with three flaky tests', () => {
  suite('test', ['one', 'two', 'three']);
  expect(summary('test')).toMatchObject({ last: '8 passed, 4 failed, 1 skipped', status: 1 });
});

it('is red with a test that fails again, beside a flaky one, and with one that does not run again', () => {
  suite('test', ['one', 'is broken']);
  expect(summary('test')).toMatchObject({ last: '9 passed, 2 failed, 1 skipped', status: 1 });
  suite('test', ['is absent']);
  expect(summary('test')).toMatchObject({ last: '8 passed, 2 failed, 1 skipped', status: 1 });
});

it('is red with what a seed found, without a rerun', () => {
  suite('sim', ['one'], { file: 'test/sim/shards/seeds-1.long.ts' });
  expect(summary('sim')).toMatchObject({ last: '8 passed, 2 failed, 1 skipped', status: 1, reruns: [] });
});

it('is red with a failed step that has no failed tests, and with errors outside of tests', () => {
  suite('test', []);
  const log = Array.from({ length: 50 }, (_, line) => `line ${line} of lint`);
  writeFileSync(join(folder, 'lint.log'), `${log.join('\n')}\n`);
  const lint = summary('lint');
  expect(lint).toMatchObject({ last: '8 passed, 1 failed, 1 skipped', status: 1 });
  expect(lint.stdout).toContain('line 20 of lint\n');
  expect(lint.stdout).toContain('line 49 of lint\n');
  expect(lint.stdout).not.toContain('line 19 of lint');
  suite('test', ['one'], { unhandledErrors: [{ message: 'socket closed' }] });
  const { stdout, ...outcome } = summary('test');
  expect(outcome).toMatchObject({ last: '9 passed, 1 failed, 1 skipped', status: 1 });
  expect(stdout).toContain('failed step: test\n    error outside of tests: socket closed\n');
});

it('runs a file again whose only failure is an error outside of its tests', () => {
  const unhandledErrors = [{ message: 'socket closed', file: resolve('test/cm/a.test.ts') }];
  suite('test', [], { unhandledErrors });
  const { stdout, ...outcome } = summary('test');
  expect(stdout).toContain('flaky: test/cm/a.test.ts\n    socket closed\n');
  expect(outcome).toMatchObject({ last: '10 passed, 0 failed, 1 skipped', status: 0 });
  expect(outcome.reruns.length).toBe(2);
  suite('test', [], { unhandledErrors: [{ message: 'socket closed', file: resolve('test/broken.test.ts') }] });
  expect(summary('test')).toMatchObject({ last: '8 passed, 2 failed, 1 skipped', status: 1 });
});

it('counts a failed test and an error outside of the tests of its file once', () => {
  const unhandledErrors = [{ message: 'socket closed', file: resolve('test/cm/a.test.ts') }];
  suite('test', ['one'], { unhandledErrors });
  const { stdout, ...outcome } = summary('test');
  expect(stdout).toContain('flaky: test/cm/a.test.ts: one\n    first output of one\n    socket closed\n');
  expect(outcome).toMatchObject({ last: '10 passed, 0 failed, 1 skipped', status: 0, reruns: ['^one$', '^one$'] });
});
