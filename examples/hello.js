/**
 * Two RDMA endpoints in one program: a message, one-sided access to memory, and an atomic counter.
 *
 *   node examples/hello.js
 *
 * In real life the two halves are two processes, or two machines; nothing else changes.
 */

import { connect, listen, openDevice } from 'rocev2';

// A device is a software RDMA NIC on one IP address. Two on one host take two loopback addresses.
const serverDevice = await openDevice({ address: '127.0.0.1' });
const clientDevice = await openDevice({ address: '127.0.0.2' });

// The server opens 64 KiB of its memory to whoever connects, and keeps the buffer to look at.
const memory = Buffer.alloc(64 * 1024);
const listener = await listen(serverDevice, { port: 18600, region: memory });

const [server, client] = await Promise.all([
  listener.accept(),
  connect(clientDevice, { host: '127.0.0.1', port: 18600 }),
]);

// Two-sided: a message arrives where the other side receives it.
await client.send(Buffer.from('hello over RoCEv2'));
console.log('server received:', (await server.receive()).data.toString());

// One-sided: the server's program takes no part; its NIC writes and reads the memory.
await client.write(Buffer.from('written by the peer'), 100);
console.log('server memory:  ', memory.toString('utf8', 100, 119));
console.log('client reads:   ', (await client.read(19, 100)).toString());

// Atomics work on 64-bit numbers in the peer's memory and return the value before.
await client.fetchAdd(0, 40n);
await client.fetchAdd(0, 2n);
console.log('compare-swap saw', await client.compareSwap(0, 42n, 7n), 'and left', memory.readBigUInt64LE(0));

await client.close();
await server.close();
await listener.close();
await clientDevice.close();
await serverDevice.close();
