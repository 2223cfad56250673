/**
 * A script of bash with a limit, which leaves nothing running. To kill its process group is not enough: a job of fio calls setsid, so it is in a
 * session of its own, and goes on writing to the disk when the script is long gone. What a script started is known by a mark in its environment.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
// timer: asks again whether a process is gone
import { setTimeout } from 'node:timers/promises';

/** Less than a test has, so that what the script has said is seen. */
const SCRIPT_LIMIT_MS = 110_000;
/** A process that the kernel keeps, for a request to a disk, may take its time. */
const KILL_ROUNDS = 50;
const MARK = 'ROCEV2_TEST_SCRIPT';

export interface ScriptResult {
  readonly exitCode: number;
  readonly output: string;
}

/** Where and how a script runs. */
export interface ScriptOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Then it is stopped, with all that it has started. */
  readonly limitMs?: number;
}

/** Runs a script that stops at its first failure; what it leaves running is ended with it, before this resolves. */
export async function runScript(
  script: string,
  { cwd, env, limitMs = SCRIPT_LIMIT_MS }: ScriptOptions,
): Promise<ScriptResult> {
  const mark = `${MARK}=${randomUUID()}`;
  const [name, value] = mark.split('=');
  const shell = spawn('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd,
    env: { ...env, [name]: value },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { text: '' };
  collect(shell, output);
  let leftovers: Promise<void> | undefined;
  const endAll = (): void => {
    shell.kill('SIGKILL');
    leftovers ??= killMarked(mark);
  };
  // timer: a limit
  const limit = globalThis.setTimeout(() => {
    output.text += `\nstopped after ${limitMs / 1000} s`;
    endAll();
  }, limitMs);
  shell.once('exit', endAll);
  const [code] = (await once(shell, 'close')) as [number | null];
  clearTimeout(limit);
  await leftovers;
  return { exitCode: code ?? -1, output: output.text };
}

function collect(shell: ChildProcess, output: { text: string }): void {
  for (const stream of [shell.stdout!, shell.stderr!]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output.text = (output.text + text).slice(-8192);
    });
  }
}

/** Again until none is found: one that is being killed may just have started another. Throws if one does not end. */
async function killMarked(mark: string): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const pids = await markedProcesses(mark);
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {} // It has just ended by itself.
    }
    await setTimeout(100); // timer: asks again
  }
  throw new Error(`processes of the script do not end: ${await markedProcesses(mark)}`);
}

/** Processes with the mark in their environment; one that has ended, and that nobody has asked for, has no environment any more. */
async function markedProcesses(mark: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const marked = await Promise.all(
    pids.map(async (pid) => {
      const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return environ.split('\0').includes(mark);
    }),
  );
  return pids.filter((_, i) => marked[i]);
}
