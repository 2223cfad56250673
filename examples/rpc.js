/**
 * Methods over a connection: schemas say what goes in and out, large values are read by the receiver out of the sender's memory.
 *
 *   node examples/rpc.js
 *
 * In real life server and client are two programs that share the service; nothing else changes.
 */

import { createHash, randomBytes } from 'node:crypto';
import { connectRpc, defineService, RpcError, serveRpc } from '@rocev2/rpc';
import { connect, listen, openDevice } from 'rocev2';

/** A schema as zod, valibot or arktype would give it (Standard Schema); here without a library. */
const schema = (fits, what) => ({
  '~standard': {
    version: 1,
    vendor: 'example',
    validate: (value) => (fits(value) ? { value } : { issues: [{ message: `it must be ${what}` }] }),
  },
});
const number = schema((value) => typeof value === 'number', 'a number');
const text = schema((value) => typeof value === 'string', 'a text');
const bytes = schema((value) => value instanceof Uint8Array, 'bytes');
const pair = schema((value) => Array.isArray(value) && value.length === 2, 'two numbers');

const service = defineService({
  add: { input: pair, output: number },
  checksum: { input: bytes, output: text },
  progress: { input: number, output: number, stream: 'output' },
  open: { input: text, output: number },
});

const serverDevice = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const clientDevice = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const listener = await listen(serverDevice, { port: 0 });
serveRpc(listener, service, {
  add: ([a, b]) => a + b,
  checksum: (data) => createHash('sha256').update(data).digest('hex'),
  async *progress(steps) {
    for (let step = 1; step <= steps; step++) yield step;
  },
  open: (name) => {
    throw new RpcError('NOT_FOUND', `there is no file '${name}'`);
  },
});

const connection = await connect(clientDevice, { host: '127.0.0.1', port: listener.port });
const { methods } = connectRpc(connection, service);
console.log('2 + 3 =', await methods.add([2, 3], { timeoutMs: 5000 }));

const file = randomBytes(1 << 20);
const isRight = (await methods.checksum(file)) === createHash('sha256').update(file).digest('hex');
console.log(`${file.length} bytes, checksum ${isRight ? 'right' : 'wrong'}`);

const steps = [];
for await (const step of methods.progress(3)) steps.push(step);
console.log('progress:', steps.join(', '));

await methods.open('x').catch((error) => console.log(`${error.remoteCode}: ${error.message}`));

await clientDevice.close();
await serverDevice.close();
