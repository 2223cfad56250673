/** Runs programs of the built package as a shell would. `npm test` builds first; without a build there is nothing to run. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';

/** What `rocev2` is. */
export const MAIN = 'packages/cli/bin/rocev2.js';

export const isBuilt = existsSync('packages/cli/dist/main.js');
/** Where a process's children can be read from the system. */
export const isLinux = process.platform === 'linux';

export class Program {
  readonly process: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #closed: Promise<unknown>;

  constructor(script: string, args: readonly string[], interpreter = process.execPath) {
    this.process = spawn(interpreter, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.process.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#closed = once(this.process, 'close');
  }

  static rocev2(...args: string[]): Program {
    return new Program(MAIN, args);
  }

  static fixture(name: string, ...args: string[]): Program {
    return new Program(fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url)), args);
  }

  /** Exit code, or the signal that ended it. */
  async ended(): Promise<number | string> {
    await this.#closed;
    return this.process.exitCode ?? this.process.signalCode!;
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** The first match in what the program writes; fails when it ends before. */
  async writes(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this[stream]);
      if (match !== null) return match;
      if (this.process.exitCode !== null || this.process.signalCode !== null) {
        throw new Error(`ended without writing ${pattern}\n${this.stdout}\n${this.stderr}`);
      }
      await Promise.race([once(this.process[stream]!, 'data'), this.#closed]);
    }
  }
}

/** The processes that this one has started, from /proc. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has ended, even while nobody has asked for its exit code.
    return !isLinux || !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Returns what starts `rocev2 ARGS`; after each test of the file that calls this, what is still running is killed. */
export function rocev2Starter(): (...args: string[]) => Program {
  const started: Program[] = [];
  afterEach(() => {
    for (const program of started.splice(0)) program.kill('SIGKILL');
  });
  return (...args) => {
    const program = Program.rocev2(...args);
    started.push(program);
    return program;
  };
}
