// @ts-check
/**
 * What a byte written to a disk over extents costs: bytes that all nodes append for it, by their own counters, and bytes that they keep for each byte of the disk that is in use. Blocks are
 * overwritten at random in the part of the disk that was filled, until cleaning has gone on for as long again; only then it counts. Load of the machine changes how long it takes, and not
 * what comes out. Manager, three nodes and the owner of the disk are in this process.
 *
 *   node bench/extents-amplification.js [--dir FOLDER] [--mib 32] [--extent-mib 1] [--rounds 2] [--json]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openExtents, serveManager, serveNode } from '../build/packages/extents/src/index.js';
import { openDevice } from '../build/src/index.js';

const MIB = 1 << 20;
const DEPTH = 16;
const SIZES = [4096, 65536];
const FILLS = [0.5, 0.8];

const { values } = parseArgs({
  options: {
    dir: { type: 'string', default: os.tmpdir() },
    mib: { type: 'string', default: '32' },
    'extent-mib': { type: 'string', default: '1' },
    rounds: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
  },
});
const sizeBytes = Number(values.mib) * MIB;
const rounds = Number(values.rounds);

/** @param {number} total @param {number} bytes @param {(k: number) => Promise<void>} write */
async function inLanes(total, bytes, write) {
  let next = 0;
  const count = Math.floor(total / bytes);
  const lane = async () => {
    while (next < count) await write(next++);
  };
  await Promise.all(Array.from({ length: DEPTH }, lane));
}

/** One disk, filled to `fill`, overwritten by writes of `bytes`. @param {number} bytes @param {number} fill */
async function measure(bytes, fill) {
  const folder = mkdtempSync(join(values.dir, 'rocev2-bench-'));
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0, io: 'auto' });
  const extentBytes = Number(values['extent-mib']) * MIB;
  const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0, extentBytes });
  /** @type {Awaited<ReturnType<typeof serveNode>>[]} */
  const nodes = [];
  for (const name of ['a', 'b', 'c'])
    nodes.push(await serveNode({ device, folder: join(folder, name), manager: manager.address }));
  const client = await openExtents({ device, manager: manager.address });
  await client.createDisk('d', { sizeBytes });
  const disk = await client.openDisk('d');
  const filled = Math.floor((fill * sizeBytes) / MIB) * MIB;
  await inLanes(filled, MIB, (k) => disk.write(k * MIB, Buffer.alloc(MIB, 1)));
  const data = Buffer.alloc(bytes, 2);
  const overwrite = () =>
    inLanes(rounds * filled, bytes, () => disk.write(Math.floor((Math.random() * filled) / bytes) * bytes, data));
  await overwrite(); // Until here the log only grows, or holds more garbage here than there.
  const appended = () => nodes.reduce((sum, node) => sum + node.counters().appendedBytes, 0);
  const [appendedBefore, before] = [appended(), disk.counters];
  await overwrite();
  const writtenBytes = Math.floor((rounds * filled) / bytes) * bytes;
  const [appendedBytes, after] = [appended() - appendedBefore, disk.counters];
  await delay(2000); // Nodes have told.
  const used = (await client.status()).nodes.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
  await disk.close();
  await client.close();
  for (const node of nodes) await node.close();
  await manager.close();
  await device.close();
  rmSync(folder, { recursive: true });
  const rounded = (/** @type {number} */ number) => Number(number.toFixed(2));
  return {
    'write KiB': bytes / 1024,
    'filled %': fill * 100,
    'written MiB': writtenBytes / MIB,
    'nodes append per byte': rounded(appendedBytes / writtenBytes),
    'of one replica': rounded(appendedBytes / writtenBytes / 3),
    'moved per byte': rounded(((after.moved - before.moved) * 4096) / writtenBytes),
    checkpoints: after.checkpoints - before.checkpoints,
    'kept per byte in use': rounded(used / filled),
  };
}

const results = [];
for (const bytes of SIZES) for (const fill of FILLS) results.push(await measure(bytes, fill));
if (values.json) process.stdout.write(`${JSON.stringify({ results }, undefined, 2)}\n`);
else {
  console.log(`${os.cpus().length} processors, load ${os.loadavg()[0].toFixed(1)}, Node ${process.version}`);
  console.table(results);
}
