// @ts-check
/** Calls between the bench and its child processes over the IPC channel: a name, one argument, an answer or an error. */

import { fork } from 'node:child_process';

/** @typedef {(argument: any) => unknown} Handler */

/** In the child: answers the parent. @param {Record<string, Handler>} handlers */
export function answerCalls(handlers) {
  process.on('message', async (/** @type {{id: number, name: string, argument: unknown}} */ { id, name, argument }) => {
    try {
      process.send?.({ id, value: await handlers[name](argument) });
    } catch (error) {
      process.send?.({ id, error: /** @type {Error} */ (error).message });
    }
  });
  process.on('disconnect', () => process.exit());
}

/** In the parent: one child process. */
export class Child {
  #next = 1;
  /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
  #pending = new Map();
  #process;
  /** The first lines of what it wrote to standard error. */
  stderr = '';
  /** Undefined while it lives, else how it ended. @type {string | undefined} */
  ended;

  /** @param {string} file @param {unknown} settings */
  constructor(file, settings) {
    this.#process = fork(new URL(file, import.meta.url), [JSON.stringify(settings)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#process.stderr?.on('data', (text) => {
      if (this.stderr.length < 2000) this.stderr += text;
    });
    this.#process.on('message', (/** @type {any} */ { id, value, error }) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) pending?.resolve(value);
      else pending?.reject(new Error(error));
    });
    this.#process.on('exit', (code, signal) => {
      this.ended = signal ?? `exit code ${code}`;
      for (const { reject } of this.#pending.values()) reject(new Error(`${file}: ${this.ended} ${this.stderr}`));
      this.#pending.clear();
    });
  }

  get pid() {
    return this.#process.pid;
  }

  /** @param {string} name @param {unknown} [argument] @returns {Promise<any>} */
  call(name, argument) {
    if (this.ended !== undefined) return Promise.reject(new Error(this.ended));
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#pending.set(id, { resolve, reject });
      this.#process.send({ id, name, argument });
    });
  }

  kill() {
    this.#process.kill('SIGKILL');
  }
}

/** The promise's value, or `otherwise` when it takes longer. @param {Promise<any>} promise @param {number} ms @param {unknown} otherwise */
export async function within(promise, ms, otherwise) {
  let timer;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, otherwise);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}
