// @ts-check
/** Calls from the bench to its processes, over the IPC of child processes. */

import { fork } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** What has been started. @type {Set<import('node:child_process').ChildProcess>} */
const processes = new Set();
process.on('exit', () => {
  for (const child of processes) child.kill('SIGKILL');
});

/** Ends with this process, whatever ends that. */
export function endWithUs(/** @type {import('node:child_process').ChildProcess} */ child) {
  processes.add(child.once('exit', () => processes.delete(child)));
}

/** Starts a file of this folder, which has to call {@link serve}. */
export function start(/** @type {string} */ file) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [], { serialization: 'advanced' });
  endWithUs(child);
  /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  let calls = 0;
  child.on('message', (/** @type {any} */ { call, result, error }) => {
    if (error === undefined) waiting.get(call)?.resolve(result);
    else waiting.get(call)?.reject(new Error(`${file}: ${error}`));
    waiting.delete(call);
  });
  child.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} has ended`));
  });
  return {
    /** @returns {Promise<any>} */
    call: (/** @type {string} */ name, /** @type {object} */ parameters) =>
      new Promise((resolve, reject) => {
        waiting.set(calls, { resolve, reject });
        child.send({ call: calls++, name, parameters });
      }),
    end: () => child.kill('SIGKILL'),
  };
}

/** Answers the calls of the process that has started this one, and ends with it. */
export function serve(/** @type {Record<string, (parameters: any) => Promise<unknown>>} */ methods) {
  process.on('disconnect', () => process.exit());
  process.on('message', async (/** @type {any} */ { call, name, parameters }) => {
    try {
      process.send?.({ call, result: await methods[name](parameters) });
    } catch (error) {
      process.send?.({ call, error: error instanceof Error ? error.stack : String(error) });
    }
  });
}
