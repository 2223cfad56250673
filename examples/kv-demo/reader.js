/** A reader as a process, so that no reader delays another. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { openKv } from '@rocev2/kv';
import { openDevice } from 'rocev2';
import { KEYS, keyFor, PacedGets } from './gets.js';

const [kind, port] = process.argv.slice(2);

async function byKv() {
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  const kv = await openKv({ device, host: '127.0.0.1', port: Number(port), codec: 'string' });
  return (key) => kv.get(key);
}

async function byNet() {
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  const waiting = [];
  createInterface({ input: socket }).on('line', (value) => waiting.shift()(value));
  return (key) =>
    new Promise((resolve) => {
      waiting.push(resolve);
      socket.write(`${key}\n`);
    });
}

const get = await (kind === 'kv' ? byKv() : byNet());
for (let key = 0; key < KEYS; key++) await get(keyFor(key)); // Everything is loaded and compiled before the measurement.
const gets = new PacedGets(get);
process.on('message', (message) => (message === 'end' ? process.send(gets.end()) : gets.start()));
process.on('disconnect', () => process.exit());
process.send('ready');
