// @ts-check
/** A reader of a Map behind messages: a child process or a thread of its owner. */

import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { HEAD_START_MS } from './block.js';
import { run } from './load.js';
import { storeBehindMessages } from './stores.js';

const post = (/** @type {object} */ message) =>
  parentPort === null ? void process.send?.(message) : parentPort.postMessage(message);
const { store, take } = storeBehindMessages(post);

async function onMessage(/** @type {any} */ message) {
  if (message.run === undefined) {
    take(message);
    return;
  }
  try {
    await delay(HEAD_START_MS);
    post({ result: await run(store, message.run) });
  } catch (error) {
    post({ error: error instanceof Error ? error.stack : String(error) });
  }
}

if (parentPort === null) {
  process.on('disconnect', () => process.exit());
  process.on('message', onMessage);
} else parentPort.on('message', onMessage);
