// @ts-check
/**
 * Appends and reads of extents over RDMA and over TCP, interleaved: a manager, three nodes and one client in this process, with files in a folder. p50 and p99 of one append at a
 * time, and MB/s with eight under way. Each append is sent three times and synced on three nodes; all of it shares the processors of this machine.
 *
 *   node bench/extents.js [--dir FOLDER] [--reps 3] [--appends 100] [--json]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { openExtents, serveManager, serveNode } from '../build/packages/extents/src/index.js';
import { openDevice } from '../build/src/index.js';

const SIZES = /** @type {const} */ ([4096, 1 << 20]);
const TRANSPORTS = /** @type {const} */ (['rdma', 'tcp']);
const DEPTH = 8;
/** Appends before the measurement, by size. */
const WARM_UPS = { 4096: 400, [1 << 20]: 20 };

const { values } = parseArgs({
  options: {
    dir: { type: 'string', default: os.tmpdir() },
    reps: { type: 'string', default: '3' },
    appends: { type: 'string', default: '100' },
    json: { type: 'boolean', default: false },
  },
});
const appends = Number(values.appends);

const quantile = (/** @type {number[]} */ numbers, /** @type {number} */ share) =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(share * numbers.length))];

/** @typedef {{ transport: string, bytes: number, ms: number[], appendMBs: number[], readMBs: number[] }} Row */

/** @type {Row[]} */
const rows = SIZES.flatMap((bytes) =>
  TRANSPORTS.map((transport) => ({ transport, bytes, ms: [], appendMBs: [], readMBs: [] })),
);

for (let rep = 0; rep < Number(values.reps); rep++) {
  for (const transport of rep % 2 === 0 ? TRANSPORTS : TRANSPORTS.toReversed()) await measure(transport);
}

/** One cluster, whose nodes and client use one transport. @param {(typeof TRANSPORTS)[number]} transport */
async function measure(transport) {
  const folder = mkdtempSync(join(values.dir, 'rocev2-bench-'));
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0, io: 'auto' });
  const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0 });
  const nodes = [];
  for (const name of ['a', 'b', 'c'])
    nodes.push(await serveNode({ device, folder: join(folder, name), manager: manager.address, transport }));
  const client = await openExtents({ device, manager: manager.address, transport });
  for (const bytes of SIZES) {
    const row = /** @type {Row} */ (rows.find((one) => one.transport === transport && one.bytes === bytes));
    const stream = `s${bytes}`;
    await client.createStream(stream);
    const writer = await client.openStream(stream);
    const data = Buffer.alloc(bytes, 7);
    for (let k = 0; k < WARM_UPS[bytes]; k++) await writer.append(data); // Connections are made, files begun, code is compiled: the kernel's TCP is already.
    for (let k = 0; k < appends; k++) {
      const startMs = performance.now();
      await writer.append(data);
      row.ms.push(performance.now() - startMs);
    }
    const startMs = performance.now();
    let left = appends;
    const lane = async () => {
      while (left-- > 0) await writer.append(data);
    };
    await Promise.all(Array.from({ length: DEPTH }, lane));
    row.appendMBs.push((appends * bytes) / (performance.now() - startMs) / 1000);
    await writer.close();
    for await (const _ of client.read(stream)); // Connections to the other replicas are made.
    const readMs = performance.now();
    let read = 0;
    for await (const record of client.read(stream)) read += record.data.length;
    row.readMBs.push(read / (performance.now() - readMs) / 1000);
  }
  await client.close();
  for (const node of nodes) await node.close();
  await manager.close();
  await device.close();
  rmSync(folder, { recursive: true });
}

const results = rows.map(({ transport, bytes, ms, appendMBs, readMBs }) => ({
  bytes,
  transport,
  'p50 ms': Number(quantile(ms, 0.5).toFixed(2)),
  'p99 ms': Number(quantile(ms, 0.99).toFixed(2)),
  'append MB/s': Number(quantile(appendMBs, 0.5).toFixed(1)),
  'read MB/s': Number(quantile(readMBs, 0.5).toFixed(1)),
}));
if (values.json) process.stdout.write(`${JSON.stringify({ cpus: os.cpus().length, results }, undefined, 2)}\n`);
else {
  console.log(`${os.cpus().length} processors, load ${os.loadavg()[0].toFixed(1)}, Node ${process.version}`);
  console.table(results);
}
