// @ts-check
/** The owner of a Map as a process, which its readers ask by messages: over the IPC of child processes (`cluster`), or as threads. */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { block } from './block.js';
import { serve } from './calls.js';
import { keyFor, valueFor } from './values.js';

const READER = new URL('./map-reader.js', import.meta.url);
const map = new Map();

/** @typedef {{run: (parameters: object) => Promise<any>}} Reader */

function answer(/** @type {any} */ { id, get, set, value }) {
  if (get !== undefined) return { id, value: map.get(get) };
  map.set(set, Buffer.from(value));
  return { id, value: true };
}

/** @returns {Reader} */
function readerOf(
  /** @type {import('node:child_process').ChildProcess | Worker} */ peer,
  /** @type {(message: object) => void} */ send,
) {
  /** @type {(message: any) => void} */
  let onResult = () => {};
  peer.on('message', (/** @type {any} */ message) => {
    if (message.id !== undefined) send(answer(message));
    else onResult(message);
  });
  return {
    run: (parameters) =>
      new Promise((resolve, reject) => {
        onResult = ({ result, error }) => (error === undefined ? resolve(result) : reject(new Error(error)));
        send({ run: parameters });
      }),
  };
}

/** @returns {Promise<Reader>} */
async function start(/** @type {string} */ kind) {
  if (kind === 'ipc') {
    const child = fork(fileURLToPath(READER), [], { serialization: 'advanced' });
    await once(child, 'spawn');
    return readerOf(child, (message) => void child.send(message));
  }
  const worker = new Worker(READER);
  await once(worker, 'online');
  return readerOf(worker, (message) => worker.postMessage(message));
}

/** @type {Reader[]} */
const readers = [];

serve({
  fill: async ({ kind, keys, valueBytes, readers: count }) => {
    for (let k = 0; k < keys; k++) map.set(keyFor(k), valueFor(k, valueBytes));
    for (let k = 0; k < count; k++) readers.push(await start(kind));
  },
  run: (parameters) =>
    Promise.all(readers.slice(0, parameters.readers).map((reader, k) => reader.run({ ...parameters, seed: k + 1 }))),
  block,
});
