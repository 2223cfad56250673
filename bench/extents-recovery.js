// @ts-check
/**
 * What redundancy costs and how it comes back: bytes that nodes store for each byte appended, before and after coding; reads of a coded stream, plain and with three of nine nodes gone; and the time until the
 * copies that a lost node had are elsewhere. Manager, nodes and client are in this process, with files in a folder, and share its processors.
 *
 *   node bench/extents-recovery.js [--dir FOLDER] [--mib 256] [--reps 3] [--only coded|lost-node] [--json]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openExtents, serveManager, serveNode } from '../build/packages/extents/src/index.js';
import { openDevice } from '../build/src/index.js';

const RECORD_BYTES = 1 << 20;
const DEPTH = 8;

const { values } = parseArgs({
  options: {
    dir: { type: 'string', default: os.tmpdir() },
    mib: { type: 'string', default: '256' },
    reps: { type: 'string', default: '3' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const records = Number(values.mib);

/** A cluster with one stream that has all records. @param {number} count @param {'rs-6-3' | undefined} code */
async function cluster(count, code) {
  const folder = mkdtempSync(join(values.dir, 'rocev2-bench-'));
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0, io: 'auto' });
  const coding = code === undefined ? {} : { code, codeAfterMs: 0 };
  const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0, ...coding });
  /** @type {Awaited<ReturnType<typeof serveNode>>[]} */
  const nodes = [];
  for (let k = 1; k <= count; k++)
    nodes.push(await serveNode({ device, folder: join(folder, `${k}`), manager: manager.address }));
  const client = await openExtents({ device, manager: manager.address });
  await client.createStream('s');
  const writer = await client.openStream('s');
  let left = records;
  const lane = async () => {
    while (left-- > 0) await writer.append(Buffer.alloc(RECORD_BYTES, left));
  };
  await Promise.all(Array.from({ length: DEPTH }, lane));
  await writer.close();
  /** Times of usedBytes in bytes appended. */
  const stored = async () => {
    const status = await client.status();
    return status.nodes.reduce((sum, { usedBytes }) => sum + usedBytes, 0) / (records * RECORD_BYTES);
  };
  /** @param {(status: Awaited<ReturnType<typeof client.status>>) => boolean} holds */
  const until = async (holds) => {
    while (!holds(await client.status())) await delay(100);
  };
  const close = async () => {
    await client.close();
    for (const node of nodes) await node.close();
    await manager.close();
    await device.close();
    rmSync(folder, { recursive: true });
  };
  return { client, nodes, stored, until, close };
}

/** MB/s of reading everything. @param {import('../build/packages/extents/src/index.js').ExtentsClient} client */
async function readMBs(client) {
  const startMs = performance.now();
  let bytes = 0;
  for await (const { data } of client.read('s')) bytes += data.length;
  if (bytes !== records * RECORD_BYTES) throw new Error(`${bytes} bytes read`);
  return bytes / (performance.now() - startMs) / 1000;
}

/** A coded stream on nine nodes: what it takes, and how fast it is read with all of them, and with six. */
async function codedStream() {
  const coded = await cluster(9, 'rs-6-3');
  await coded.until(({ extents }) => extents.coded === extents.sealed && extents.coded > 0);
  await delay(2000); // Replicas are deleted, and nodes have told.
  const stored = await coded.stored();
  await readMBs(coded.client); // Connections are made, code is compiled.
  const plain = await readMBs(coded.client);
  for (const node of coded.nodes.splice(0, 3)) await node.close();
  await readMBs(coded.client).catch(() => 0); // It learns who is gone.
  const around = await readMBs(coded.client);
  await coded.close();
  return {
    'stored, rs-6-3': Number(stored.toFixed(3)),
    'read MB/s': Number(plain.toFixed(1)),
    'around 3 of 9': Number(around.toFixed(1)),
  };
}

/** A replicated stream on five nodes, of which one goes for ever: until its copies are elsewhere. */
async function lostNode() {
  const replicated = await cluster(5, undefined);
  await delay(2000); // Nodes have told.
  const stored = await replicated.stored();
  const { usedBytes: lost } = (await replicated.client.status()).nodes[0];
  await replicated.nodes.splice(0, 1)[0].close();
  const startMs = performance.now();
  await replicated.until(({ nodes }) => nodes.some(({ state }) => state === 'down'));
  const noticedMs = performance.now() - startMs;
  await replicated.until(({ extents }) => extents.underReplicated === 0 && extents.copying === 0);
  const restoredMs = performance.now() - startMs;
  await replicated.close();
  return {
    'stored, replicas': Number(stored.toFixed(3)),
    'lost MiB': Math.round(lost / (1 << 20)),
    'noticed s': Number((noticedMs / 1000).toFixed(1)),
    'restored s': Number((restoredMs / 1000).toFixed(1)),
  };
}

const PARTS = { coded: codedStream, 'lost-node': lostNode };
const parts = Object.entries(PARTS).filter(([name]) => (values.only ?? name) === name);
if (parts.length === 0) throw new Error(`--only ${values.only}: it is one of ${Object.keys(PARTS).join(', ')}`);
const results = [];
for (let rep = 0; rep < Number(values.reps); rep++) {
  const result = {};
  for (const [, run] of parts) Object.assign(result, await run());
  results.push(result);
}
if (values.json) process.stdout.write(`${JSON.stringify({ cpus: os.cpus().length, results }, undefined, 2)}\n`);
else {
  console.log(`${os.cpus().length} processors, load ${os.loadavg()[0].toFixed(1)}, Node ${process.version}`);
  console.table(results);
}
