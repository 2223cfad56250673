/** A store whose NIC has a thread of its own. */

import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import type { RdmaDevice } from '../../src/index.js';
import { builtApi, builtKv, isBuilt } from '../support/built-api.js';

const ADDRESS = '127.0.4.2';
const SIZES = { bytes: 4 << 20, entries: 1000, valueBytesMax: 4096 };
const GETS = 30;

/** A reader in a thread of its own: it says `ready`, and after a message gets values and counts them in `workerData`. */
const READER = (port: number) => `
  const { parentPort, workerData } = require('node:worker_threads');
  (async () => {
    const { openDevice } = await import('${pathToFileURL('dist/index.js').href}');
    const { openKv } = await import('${pathToFileURL('dist/kv/index.js').href}');
    const device = await openDevice({ address: '${ADDRESS}', udpPort: 0 });
    const kv = await openKv({ device, host: '${ADDRESS}', port: ${port}, codec: 'string' });
    parentPort.once('message', async () => {
      for (let k = 0; k < ${GETS}; k++) {
        const [short, long, none] = await kv.getMany(['short', 'long', 'none']);
        if (short !== 'on' || long !== 'x'.repeat(4000) || none !== undefined) throw new Error('wrong value');
      }
      Atomics.store(workerData, 0, 1);
      Atomics.notify(workerData, 0);
      await device.close();
      parentPort.close();
    });
    parentPort.postMessage('ready');
  })();`;

describe.runIf(isBuilt)('a store on a worker engine', () => {
  const devices: RdmaDevice[] = [];
  afterEach(async () => {
    for (const device of devices.splice(0).reverse()) await device.close();
  });

  async function serve() {
    const { openDevice } = await builtApi();
    const { serveKv } = await builtKv();
    const device = await openDevice({ address: ADDRESS, udpPort: 0, engine: 'worker' });
    devices.push(device);
    return serveKv<string>({ device, port: 0, codec: 'string', ...SIZES });
  }

  it('answers GETs while the thread of its owner is blocked', async () => {
    const owner = await serve();
    await owner.set('short', 'on');
    await owner.set('long', 'x'.repeat(4000));
    const done = new Int32Array(new SharedArrayBuffer(4));
    const reader = new Worker(READER(owner.port), { eval: true, workerData: done });
    await once(reader, 'message');
    reader.postMessage('go');
    // timer: a limit. This thread, the owner's, stands still until the reader has all its answers.
    expect(Atomics.wait(done, 0, 0, 30_000)).not.toBe('timed-out');
    await once(reader, 'exit');
  });

  it('gives right values while they are replaced at full speed', async () => {
    const owner = await serve();
    const { openDevice } = await builtApi();
    const { openKv } = await builtKv();
    const device = await openDevice({ address: ADDRESS, udpPort: 0 });
    devices.push(device);
    const reader = await openKv<string>({ device, host: ADDRESS, port: owner.port, codec: 'string' });
    const keys = ['a', 'b', 'c'];
    let isDone = false;
    const writing = (async () => {
      for (let k = 0; !isDone; k++) {
        for (let n = 0; n < 20; n++) await owner.set(keys[n % 3], `${k}:`.repeat(n % 2 === 0 ? 10 : 300));
        await new Promise(setImmediate);
      }
    })();
    const seen = new Set<string>();
    for (let k = 0; k < 200; k++) {
      for (const value of await reader.getMany(keys)) {
        if (value === undefined) continue;
        const [first] = value.split(':');
        // A mixture of two values would show two numbers.
        expect(value === `${first}:`.repeat(10) || value === `${first}:`.repeat(300)).toBe(true);
        seen.add(first);
      }
    }
    isDone = true;
    await writing;
    expect(seen.size).toBeGreaterThan(1);
  });
});
