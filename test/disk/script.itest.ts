/** The limit of a script holds for everything that it started. */

import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runScript } from './support/script.js';
import { describeWithTools } from './support/tools.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-script-'));
});
afterEach(() => rm(folder, { recursive: true }));

const run = (script: string, limitMs: number) => runScript(script, { cwd: folder, env: process.env, limitMs });

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(
      execFileSync('cat', [`/proc/${pid}/status`], { stdio: ['ignore', 'pipe', 'ignore'] }).toString(),
    );
  } catch {
    return false;
  }
}

// timer: what must not outlive its script
const SLEEPER = 'setsid sh -c "echo \\$\\$ > pid; exec sleep 1000"';

test('a process in a session of its own ends with its script, and holds nothing up', async () => {
  const { exitCode, output } = await run(`${SLEEPER} & wait`, 3_000);
  expect([exitCode, output]).toEqual([-1, '\nstopped after 3 s']);
  expect(isRunning(Number(await readFile(join(folder, 'pid'), 'utf8')))).toBe(false);
});

test('what a script that succeeds leaves behind is ended, too', async () => {
  const { exitCode } = await run(`${SLEEPER} & until [ -s pid ]; do sleep 0.1; done`, 60_000); // timer: asks again
  expect(exitCode).toBe(0);
  expect(isRunning(Number(await readFile(join(folder, 'pid'), 'utf8')))).toBe(false);
});

describeWithTools('fio', () => {
  test('its jobs do not outlive the limit', async () => {
    await run('fio --name=j --ioengine=null --size=1g --rw=randread --time_based --runtime=100 --rate=1m', 5_000);
    const left = execFileSync('ps', ['-eo', 'args']).toString().split('\n');
    expect(left.filter((line) => line.startsWith('fio --name=j --ioengine=null'))).toEqual([]);
  });
});
