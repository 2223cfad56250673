/**
 * Starts a child process, calls its methods, and notices its death: open calls and `died` then reject with the
 * process's name and last lines of stderr.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES, RoceError, type RoceErrorCode } from 'rocev2/internal/core';
import { loadedExtensions } from 'rocev2/internal/driver';
import { type ArgsOf, answerSchema, type Call, type ProcessService, type ResultOf } from './calls.js';

const STDERR_LINES_SHOWN = 8;
const STDERR_CHARACTERS_KEPT = 8192;
/** It cleans nothing up in either case. */
const STOP_TIMEOUT_MS = 200;

export class ProcessFailure extends Error {
  override readonly name = 'ProcessFailure';
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class ChildService<S extends ProcessService> implements AsyncDisposable {
  readonly name: string;
  readonly died: Promise<never>;
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<unknown>;
  #nextId = 0;
  #stderrTail = '';
  #stopping = false;
  #failure: ProcessFailure | undefined;

  /** It loads the extensions that this process has loaded. */
  constructor(name: string, entry: URL) {
    this.name = name;
    this.#process = fork(fileURLToPath(entry), [...loadedExtensions()], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
      execArgv: [],
    });
    this.#process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_CHARACTERS_KEPT);
    });
    this.#process.on('message', (message) => this.#onAnswer(message));
    this.died = new Promise((_, reject) => {
      this.#process.once('exit', async (code, signal) => {
        await finished(this.#process.stderr!).catch(() => {}); // Its last output may still be in the pipe.
        this.#fail(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`, reject);
      });
      this.#process.once('error', (error) => this.#fail(`could not be started: ${error.message}`, reject));
    });
    this.died.catch(() => {});
    this.#exited = once(this.#process, 'exit').catch(() => {}); // There never was a process.
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  call<N extends keyof S & string>(name: N, args: ArgsOf<S[N]>): Promise<ResultOf<S[N]>> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise<unknown>((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      // A send that fails means that the process is going down; its end is reported with the end of its stderr.
      this.#process.send({ id, method: name, args } satisfies Call, () => {});
    }) as Promise<ResultOf<S[N]>>;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#process.connected) this.#process.disconnect();
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #onAnswer(message: unknown): void {
    const answer = answerSchema.parse(message);
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if ('error' in answer) pending?.reject(this.#errorOf(answer.error));
    else pending?.resolve(answer.result);
  }

  #errorOf({ message, code }: { message: string; code?: string | undefined }): Error {
    const text = `${this.name}: ${message}`;
    return isRoceErrorCode(code) ? new RoceError(code, text) : new ProcessFailure(text);
  }

  #fail(how: string, reject: (error: Error) => void): void {
    if (this.#failure !== undefined) return;
    const lines = this.#stderrTail.trimEnd().split('\n').slice(-STDERR_LINES_SHOWN);
    const output = lines[0] === '' ? '' : `; the end of its stderr:\n${lines.map((line) => `  ${line}`).join('\n')}`;
    this.#failure = new ProcessFailure(`the process of ${this.name} ${how}${output}`);
    for (const pending of this.#pending.values()) pending.reject(this.#failure);
    this.#pending.clear();
    if (!this.#stopping) reject(this.#failure);
  }
}

function isRoceErrorCode(code: string | undefined): code is RoceErrorCode {
  return (ERROR_CODES as readonly (string | undefined)[]).includes(code);
}

export function whileAlive<T>(
  children: ReadonlyArray<{ readonly died: Promise<never> }>,
  work: Promise<T>,
): Promise<T> {
  return Promise.race([work, ...children.map(({ died }) => died)]);
}
