/**
 * A log on four nodes that outlives one of them: a manager, nodes, an owner that appends, and a reader. A node ends in the middle; nothing that was acknowledged is
 * lost.
 *
 *   node examples/extents.js
 *
 * All of them are in one process here. In real life each is a program of its own; nothing else changes.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openExtents, serveManager, serveNode } from '@rocev2/extents';
import { openDevice } from 'rocev2';

const RECORDS = 200;

const folder = await mkdtemp(join(tmpdir(), 'rocev2-extents-'));
const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0 });
const nodes = [];
for (const name of ['a', 'b', 'c', 'd'])
  nodes.push(await serveNode({ device, folder: join(folder, name), manager: manager.address }));

const extents = await openExtents({ device, manager: manager.address });
await extents.createStream('events');
const writer = await extents.openStream('events');
for (let k = 0; k < RECORDS; k++) {
  await writer.append(Buffer.from(`event ${k}`)); // Resolves when three nodes have it on their disks.
  if (k === RECORDS / 2) {
    const lost = writer.extent.replicas[0].node;
    await nodes.find(({ node }) => node === lost).close();
  }
}
console.log(`${RECORDS} events appended, ${writer.counters.failovers} failover`);
await writer.close();

let count = 0;
for await (const { data } of extents.read('events')) if (data.toString() === `event ${count}`) count++;
console.log(`${count} events read, in order`);

await extents.close();
for (const node of nodes) await node.close();
await manager.close();
await device.close();
await rm(folder, { recursive: true });
