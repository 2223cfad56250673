/** Which failed tests are flaky, and how one is run again. */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type Failure,
  failuresOf,
  hasPassed,
  isFound,
  judge,
  linesOf,
  type Never,
  RERUNS_AT_MOST,
  type Report,
  rerunCommand,
  stepsOfFlaky,
} from '../../.ci/flaky.mjs';

const NEVER: Never = JSON.parse(readFileSync('.ci/never-flaky.json', 'utf8'));
const failure = (more: Partial<Failure> = {}): Failure => ({
  suite: 'test',
  file: 'test/cm/connection.test.ts',
  fullName: 'a connection opens',
  messages: ['expected 1 to be 2'],
  ...more,
});
const report = (testResults: Report['testResults']): Report => ({
  success: false,
  numPassedTests: 0,
  numFailedTests: 1,
  testResults,
});

describe('a failed test', () => {
  it('is flaky when it passes twice alone', () => {
    expect(judge([failure()], NEVER, () => true)).toEqual({ flaky: [failure()], failed: [] });
  });

  it('stays failed when it fails in either rerun, and is not run further', () => {
    for (const outcomes of [[false], [true, false]]) {
      const left = [...outcomes];
      expect(judge([failure()], NEVER, () => left.shift()!)).toEqual({ flaky: [], failed: [failure()] });
      expect(left).toEqual([]);
    }
  });

  it('is not run again when a search over seeds, kills or faults found it', () => {
    const found = [
      failure({ file: 'test/sim/shards/seeds-1.long.ts' }),
      failure({ file: 'test/fuzz/shards/nic-1.long.ts' }),
      failure({ file: 'test/soak/memory.long.ts' }),
      failure({ file: 'packages/extents/test/killed.long.ts' }),
      failure({ messages: ['seed 7: expected [ 1 ] to deeply equal []'] }),
      failure({ messages: ['replay with: npm run replay -- 7 fuzz'] }),
      failure({ fullName: 'deliver whole messages only, in order (seed 3)' }),
    ];
    const rerun: Failure[] = [];
    expect(judge(found, NEVER, (test) => rerun.push(test) > 0)).toEqual({ flaky: [], failed: found });
    expect(rerun).toEqual([]);
  });

  it('may speak of seeds without one (twin)', () => {
    expect(isFound(failure({ messages: ['at test/support/seeds.ts:11:5'], fullName: 'seeds differ' }), NEVER)).toBe(
      false,
    );
  });

  it('is not run again when many fail', () => {
    const many = Array.from({ length: RERUNS_AT_MOST + 1 }, (_, at) => failure({ fullName: `test ${at}` }));
    expect(judge(many, NEVER, () => true).failed).toEqual(many);
    expect(judge(many.slice(1), NEVER, () => true).failed).toEqual([]);
  });
});

describe('the failures of a report', () => {
  const passing = { fullName: 'a passes', status: 'passed', failureMessages: [] };
  const failing = { fullName: 'b fails', status: 'failed', failureMessages: ['wrong'] };

  it('are its failed tests, or a file that failed as a whole', () => {
    const testResults = [
      { name: '/root/test/a.test.ts', status: 'failed', message: '', assertionResults: [passing, failing] },
      { name: '/root/test/b.test.ts', status: 'failed', message: 'cannot import', assertionResults: [] },
      { name: '/root/test/c.test.ts', status: 'failed', message: 'a hook', assertionResults: [passing] },
      { name: '/root/test/d.test.ts', status: 'passed', message: '', assertionResults: [passing] },
    ];
    expect(failuresOf('kv', report(testResults), '/root')).toEqual([
      { suite: 'kv', file: 'test/a.test.ts', fullName: 'b fails', messages: ['wrong'] },
      { suite: 'kv', file: 'test/b.test.ts', fullName: undefined, messages: ['cannot import'] },
      { suite: 'kv', file: 'test/c.test.ts', fullName: undefined, messages: ['a hook'] },
    ]);
  });
});

describe('a failed step', () => {
  const run = { config: 'vitest.config.ts', node: 'v20.1.0', unhandledErrors: [] };

  it('is forgiven when flaky tests alone failed', () => {
    expect(stepsOfFlaky(['test'], [failure()], [], { test: run })).toEqual(['test']);
  });

  it('stays failed with another failure, without flaky tests, with errors outside of tests, or without a report', () => {
    const unhandled = { ...run, unhandledErrors: [{ message: 'socket closed' }] };
    expect(stepsOfFlaky(['test'], [failure()], [failure()], { test: run })).toEqual([]);
    expect(stepsOfFlaky(['lint'], [failure()], [], { test: run })).toEqual([]);
    expect(stepsOfFlaky(['test'], [failure()], [], { test: unhandled })).toEqual([]);
    expect(stepsOfFlaky(['test'], [failure()], [], {})).toEqual([]);
  });
});

it('what is printed of a failure leaves out the frames of vitest', () => {
  const frames = ['at /root/test/a.test.ts:1:2', 'at file:///root/node_modules/@vitest/runner/dist/a.js:1:2'];
  expect(linesOf(['wrong', frames.join('\n')])).toEqual(['wrong', frames[0]]);
});

describe('a rerun', () => {
  const command = (fullName: string | undefined, node = 'v20.1.0') =>
    rerunCommand({ file: 'test/a.test.ts', fullName }, { config: '/root/long.ts', node }, 'v20.9.0');

  it('names the configuration, the file and exactly one test', () => {
    const all = ['npx', 'vitest', 'run', '--config', '/root/long.ts', resolve('test/a.test.ts')];
    expect(command('adds 1+1 (twice)')).toEqual([...all, '-t', '^adds 1\\+1 \\(twice\\)$']);
    expect(command(undefined)).toEqual(all);
  });

  it('runs on the Node of its suite', () => {
    expect(command('a', 'v22.3.0').slice(0, 6)).toEqual(['node', 'scripts/on-node.js', '22', '--', 'npx', 'vitest']);
  });

  it('has passed only if a test ran', () => {
    expect(hasPassed({ success: true, numPassedTests: 1, numFailedTests: 0 })).toBe(true);
    expect(hasPassed({ success: true, numPassedTests: 0, numFailedTests: 0 })).toBe(false);
    expect(hasPassed({ success: false, numPassedTests: 1, numFailedTests: 1 })).toBe(false);
  });
});

it('known flaky tests name their file, their name and the cause', () => {
  const known: unknown[] = JSON.parse(readFileSync('.ci/known-flaky.json', 'utf8'));
  const entry = { file: expect.any(String), name: expect.any(String), cause: expect.any(String) };
  expect(known).toEqual(known.map(() => entry));
});
