/**
 * Three ways to read values of a process that computes for 2 s out of every 4: by @rocev2/kv, by node:net, and by the IPC of child processes.
 *
 *   node examples/kv-demo/main.js [seconds] [chart.html]
 *
 * Each reader asks 200 times a second, whether or not it was answered. node:net and IPC wait until the owner has time; @rocev2/kv READs its memory.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { chart } from './chart.js';
import { BUSY_MS, IDLE_MS, isBusy, PacedGets } from './gets.js';

const [seconds = '20', html] = process.argv.slice(2);
const children = [];

/** Starts a program of this folder. It ends with this process. */
function start(program, ...args) {
  const child = fork(new URL(program, import.meta.url), args.map(String));
  children.push(child);
  const next = async () => (await once(child, 'message'))[0];
  return { child, next };
}

const owner = start('owner.js');
const { kvPort, netPort } = await owner.next();
const [kv, net] = [start('reader.js', 'kv', kvPort), start('reader.js', 'net', netPort)];
await Promise.all([kv.next(), net.next()]);

// This process is the owner's parent: it asks over the channel between them.
const waiting = new Map();
owner.child.on('message', ({ id, value }) => waiting.get(id)?.(value));
let asked = 0;
const ipc = new PacedGets(
  (key) =>
    new Promise((resolve) => {
      waiting.set(++asked, resolve);
      owner.child.send({ id: asked, key });
    }),
);

const startMs = Date.now();
for (const { child } of [owner, kv, net]) child.send({ startMs });
ipc.start();
await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1000));
for (const { child } of [kv, net]) child.send('end');
const readers = [
  { name: '@rocev2/kv', samples: await kv.next() },
  { name: 'node:net', samples: await net.next() },
  { name: 'IPC', samples: ipc.end() },
];
for (const child of children) child.kill();

const percentile = (values, share) => (values.sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0).toFixed(1);
console.log(`the owner computes ${BUSY_MS / 1000} s of every ${(IDLE_MS + BUSY_MS) / 1000} s`);
console.log(`${'p99, ms'.padEnd(12)}${'owner waits'.padStart(16)}${'owner computes'.padStart(16)}`);
for (const { name, samples } of readers) {
  const of = (busy) => samples.filter(({ askedMs }) => isBusy(askedMs - startMs) === busy).map(({ ms }) => ms);
  console.log(
    `${name.padEnd(12)}${percentile(of(false), 0.99).padStart(16)}${percentile(of(true), 0.99).padStart(16)}`,
  );
}
if (html !== undefined) writeFileSync(html, chart(readers, startMs, Number(seconds)));
