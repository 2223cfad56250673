/**
 * A disk over RDMA that survives the loss of RDMA: the connection is broken in the middle of the work, requests go on over TCP, and come back.
 *
 *   node examples/storage.js
 *
 * In real life server and client are two processes, or two machines; nothing else changes.
 */

import { openDevice } from 'rocev2';
import { MemoryDevice, StorageClient, StorageServer } from 'rocev2/storage';

const HOST = '127.0.0.1';
// UDP port 0: the system chooses, so that two NICs can share an address.
const serverDevice = await openDevice({ address: HOST, udpPort: 0 });
const clientDevice = await openDevice({ address: HOST, udpPort: 0 });

const server = await StorageServer.open({
  disks: [new MemoryDevice(64 << 20)],
  host: HOST,
  port: 0,
  device: serverDevice,
});
const client = await StorageClient.connect({
  host: HOST,
  port: server.port,
  device: clientDevice,
  path: { holdDownNs: 100e6 }, // Ten seconds by default; this is a demonstration.
});
const { disk } = client;
console.log(`a disk of ${disk.sizeBytes >> 20} MiB over ${transport()}`);

// 64 blocks at a time, and the connection breaks while they are under way.
const blocks = Array.from({ length: 64 }, (_, i) => Buffer.alloc(65_536, i));
const writes = Promise.all(blocks.map((block, i) => disk.write(i * block.length, block, { fua: true })));
client.failover();
await writes;
console.log(`64 writes done over ${transport()}, ${client.report.failovers} failover`);

while (transport() !== 'rdma') await new Promise((resolve) => setTimeout(resolve, 10));
let right = 0;
for (const [i, block] of blocks.entries()) {
  const read = Buffer.alloc(block.length);
  await disk.read(i * block.length, block.length, read);
  if (read.equals(block)) right++;
}
console.log(`back on ${transport()}: ${right} of ${blocks.length} blocks read as written`);

await client.close();
await server.close();
await clientDevice.close();
await serverDevice.close();

function transport() {
  const { rdma, tcp } = client.report.sessions;
  return rdma > 0 ? 'rdma' : tcp > 0 ? 'tcp' : 'nothing';
}
