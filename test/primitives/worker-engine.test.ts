/** Primitives whose owner's NIC has a thread of its own. */

import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { builtApi, builtPrimitives, isBuilt } from '../support/built-api.js';

const ADDRESS = '127.0.4.6';
const ADDS = 10;

/** A client in a thread of its own: it says `ready`, and after a message uses what it has opened, and counts in `workerData` that it is done. */
const CLIENT = (port: number) => `
  const { parentPort, workerData } = require('node:worker_threads');
  (async () => {
    const { openDevice } = await import('${pathToFileURL('dist/index.js').href}');
    const { openPrimitives } = await import('${pathToFileURL('dist/primitives/index.js').href}');
    const device = await openDevice({ address: '${ADDRESS}', udpPort: 0 });
    const primitives = await openPrimitives({ device, host: '${ADDRESS}', port: ${port} });
    const counter = await primitives.counter('c');
    const lock = await primitives.lock('l');
    parentPort.once('message', async () => {
      for (let k = 0; k < ${ADDS}; k++) await lock.run(async () => counter.compareAndSet(BigInt(k), BigInt(k + 1)));
      if (await counter.get() !== ${ADDS}n) throw new Error('wrong count');
      Atomics.store(workerData, 0, 1);
      Atomics.notify(workerData, 0);
      await device.close();
      parentPort.close();
    });
    parentPort.postMessage('ready');
  })();`;

describe.runIf(isBuilt)('primitives on a worker engine', () => {
  it('work while the thread of their owner is blocked', async () => {
    const { openDevice } = await builtApi();
    const { servePrimitives } = await builtPrimitives();
    const device = await openDevice({ address: ADDRESS, udpPort: 0, engine: 'worker' });
    try {
      const owner = await servePrimitives({ device, port: 0 });
      const done = new Int32Array(new SharedArrayBuffer(4));
      const client = new Worker(CLIENT(owner.port), { eval: true, workerData: done });
      await once(client, 'message');
      client.postMessage('go');
      // timer: a limit. This thread, the owner's, stands still until the client is done.
      expect(Atomics.wait(done, 0, 0, 30_000)).not.toBe('timed-out');
      await once(client, 'exit');
    } finally {
      await device.close();
    }
  });
});
