/** A client in a thread of its own, which does its work while the thread of the test stands still. */

import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { expect } from 'vitest';

/** A client as JavaScript. */
interface ClientScript {
  /** Bundles that it needs, by what it calls them: `{ openKv: 'packages/kv/dist/index.js' }`. */
  readonly imports: Readonly<Record<string, string>>;
  /** Its address. */
  readonly address: string;
  /** What it does first, with `device`. */
  readonly prepare: string;
  /** What it does while the test's thread stands still. Throws where something is wrong. */
  readonly act: string;
}

/** Resolves once the client has done its work. Fails when it did not: then it needed this thread. */
export async function actWhileThisThreadStandsStill({ imports, address, prepare, act }: ClientScript): Promise<void> {
  const loads = Object.entries({ openDevice: 'dist/index.js', ...imports }).map(
    ([name, entry]) => `const { ${name} } = await import('${pathToFileURL(entry).href}');`,
  );
  const script = `
    const { parentPort, workerData } = require('node:worker_threads');
    (async () => {
      ${loads.join('\n')}
      const device = await openDevice({ address: '${address}', udpPort: 0 });
      ${prepare}
      parentPort.once('message', async () => {
        ${act}
        Atomics.store(workerData, 0, 1);
        Atomics.notify(workerData, 0);
        await device.close();
        parentPort.close();
      });
      parentPort.postMessage('ready');
    })();`;
  const done = new Int32Array(new SharedArrayBuffer(4));
  const client = new Worker(script, { eval: true, workerData: done });
  await once(client, 'message');
  client.postMessage('go');
  // timer: a limit. This thread stands still until the client is done.
  expect(Atomics.wait(done, 0, 0, 30_000)).not.toBe('timed-out');
  await once(client, 'exit');
}
