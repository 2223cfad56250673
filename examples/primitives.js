/**
 * Workers that take turns while the process that owns their locks and counters is busy.
 *
 *   node examples/primitives.js
 *
 * The workers are threads here. In real life they are other programs; nothing else changes.
 */

import { once } from 'node:events';
import process from 'node:process';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openPrimitives, servePrimitives } from '@rocev2/primitives';
import { openDevice } from 'rocev2';

const WORKERS = 3;
const EACH = 100;
const TURNS = 5;

async function owner() {
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0, engine: 'worker' });
  const server = await servePrimitives({ device, port: 0 });
  const done = new Int32Array(new SharedArrayBuffer(4));
  const workers = Array.from(
    { length: WORKERS },
    () => new Worker(new URL(import.meta.url), { workerData: { port: server.port, done } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  for (const worker of workers) worker.postMessage('go');
  for (let count = 0; count < WORKERS; count = Atomics.load(done, 0)) Atomics.wait(done, 0, count); // This thread answers nobody.

  const results = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]));
  const began = results.map(({ round }) => round);
  console.log(began.every((round) => round === 0n) ? 'all began together' : `began in rounds ${began}`);
  const numbers = new Set(results.flatMap((result) => result.numbers));
  console.log(`${numbers.size} numbers, no two alike`);
  const most = results.map(({ count }) => count).reduce((a, b) => (a > b ? a : b));
  console.log(`counted while the owner was busy: ${most}`);
  const turns = results.flatMap((result) => result.turns).sort((a, b) => (a.token < b.token ? -1 : 1));
  const isInOrder = turns.every(({ from }, k) => k === 0 || from >= turns[k - 1].until);
  console.log(isInOrder ? 'one holder at a time, tokens in order' : 'two holders at a time');
  await server.close();
  await device.close();
}

async function worker({ port, done }) {
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  const primitives = await openPrimitives({ device, host: '127.0.0.1', port });
  const start = await primitives.barrier('start', { parties: WORKERS });
  const ids = await primitives.sequencer('ids');
  const counter = await primitives.counter('counter');
  const lock = await primitives.lock('printer');
  parentPort.postMessage('ready');
  await once(parentPort, 'message');

  const round = await start.wait();
  const numbers = [];
  for (let k = 0; k < EACH; k++) numbers.push(await ids.next());
  let count = 0n;
  for (let k = 0; k < EACH; k++) count = await counter.add();
  const turns = [];
  for (let k = 0; k < TURNS; k++) {
    await lock.run(async ({ token }) => {
      const from = process.hrtime.bigint();
      await new Promise((resolve) => setTimeout(resolve, 1));
      turns.push({ token, from, until: process.hrtime.bigint() });
    });
  }
  Atomics.add(done, 0, 1);
  Atomics.notify(done, 0);
  parentPort.postMessage({ round, numbers, count, turns });
  await device.close();
}

await (isMainThread ? owner() : worker(workerData));
