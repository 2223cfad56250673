/**
 * A disk that outlives a node: it is written while a node ends, kept as a snapshot, overwritten, and read again. The snapshot still has what was there.
 *
 *   node examples/extents-disk.js
 *
 * All of it is in one process here. In real life each part is a program of its own; nothing else changes.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openExtents, serveManager, serveNode } from '@rocev2/extents';
import { openDevice } from 'rocev2';

const MIB = 1 << 20;

const folder = await mkdtemp(join(tmpdir(), 'rocev2-disk-'));
const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0 });
const nodes = [];
for (const name of ['a', 'b', 'c', 'd'])
  nodes.push(await serveNode({ device, folder: join(folder, name), manager: manager.address }));

const extents = await openExtents({ device, manager: manager.address });
await extents.createDisk('vol', { sizeBytes: 64 * MIB });
const disk = await extents.openDisk('vol');
await disk.write(0, Buffer.alloc(4 * MIB, 'before')); // Resolves when three nodes have it on their disks.
await nodes[0].close();
await disk.write(1000, Buffer.from('a write of any length, anywhere'));
await extents.snapshotDisk('vol', 'vol-kept');
await disk.write(0, Buffer.alloc(4 * MIB, 'after'));

for (const name of ['vol', 'vol-kept']) {
  const opened = name === 'vol' ? disk : await extents.openDisk(name);
  const bytes = Buffer.alloc(6);
  await opened.read(0, bytes.length, bytes);
  console.log(`${name} begins with '${bytes}'`);
  await opened.close();
}

await extents.close();
for (const node of nodes) await node.close();
await manager.close();
await device.close();
await rm(folder, { recursive: true });
