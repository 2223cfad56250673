/** The owner: serves its entries by @rocev2/kv, by node:net and to its parent, and computes without a break for a part of the time. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { serveKv } from '@rocev2/kv';
import { openDevice } from 'rocev2';
import { BUSY_MS, IDLE_MS, KEYS, keyFor, valueFor } from './gets.js';

const device = await openDevice({ address: '127.0.0.1', udpPort: 0, engine: 'worker' });
const store = await serveKv({ device, port: 0, codec: 'string', bytes: 8 << 20, entries: KEYS });
for (let key = 0; key < KEYS; key++) await store.set(keyFor(key), valueFor(key));
const values = new Map(Array.from({ length: KEYS }, (_, key) => [keyFor(key), valueFor(key)]));

const server = createServer((socket) => {
  socket.setNoDelay(true).on('error', () => {});
  createInterface({ input: socket }).on('line', (key) => socket.write(`${values.get(key)}\n`));
}).listen(0, '127.0.0.1');
await once(server, 'listening');

process.on('message', ({ startMs, id, key }) => {
  if (startMs === undefined) process.send({ id, value: values.get(key) });
  else compute(startMs + IDLE_MS);
});
process.on('disconnect', () => process.exit());
process.send({ kvPort: store.port, netPort: server.address().port });

function compute(beginMs) {
  setTimeout(() => {
    while (Date.now() < beginMs + BUSY_MS); // This process answers nobody.
    compute(beginMs + BUSY_MS + IDLE_MS);
  }, beginMs - Date.now());
}
