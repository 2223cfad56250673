/**
 * Values that are read while their owner is busy: the owner computes for a second without a break, and a reader gets its answers all the same.
 *
 *   node examples/kv.js
 *
 * The reader runs in a thread here. In real life it is another program; nothing else changes.
 */

import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openKv, serveKv } from '@rocev2/kv';
import { openDevice } from 'rocev2';

const BUSY_MS = 1000;

async function owner() {
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0, engine: 'worker' });
  const store = await serveKv({ device, port: 0, codec: 'json' });
  await store.set('price:tea', { cents: 349 });

  const busy = new Int32Array(new SharedArrayBuffer(4)); // 1 while this thread computes, then 2.
  const reader = new Worker(new URL(import.meta.url), { workerData: { port: store.port, busy } });
  const next = async () => (await once(reader, 'message'))[0];
  console.log(await next());

  Atomics.store(busy, 0, 1);
  const endMs = Date.now() + BUSY_MS;
  while (Date.now() < endMs); // This thread answers nobody.
  Atomics.store(busy, 0, 2);
  const gets = await next();
  console.log(gets > 10 ? 'many GETs answered while the owner was busy' : `${gets} GETs answered`);

  const { version } = await store.getEntry('price:tea');
  console.log('written once:', (await store.compareAndSet('price:tea', version, { cents: 359 })) !== undefined);
  console.log('written again:', (await store.compareAndSet('price:tea', version, { cents: 399 })) !== undefined);
  await store.close();
  await device.close();
}

async function reader({ port, busy }) {
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  const kv = await openKv({ device, host: '127.0.0.1', port, codec: 'json' });
  const { cents } = await kv.get('price:tea');
  parentPort.postMessage(`tea costs ${cents} cents`);

  let gets = 0;
  while (Atomics.load(busy, 0) < 2) {
    const isBusy = Atomics.load(busy, 0) === 1;
    await kv.get('price:tea');
    if (isBusy && Atomics.load(busy, 0) === 1) gets++;
  }
  parentPort.postMessage(gets);
  await device.close();
}

await (isMainThread ? owner() : reader(workerData));
