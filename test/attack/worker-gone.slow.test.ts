/** The NIC's thread ends by itself, by an extension that throws or exits: everybody who waits learns why, and `close()` settles. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RdmaDevice } from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';

const SERVER = '127.47.0.1';
const CLIENT = '127.47.0.2';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-worker-gone-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** An extension that ends the NIC's thread when this process writes into its shared word. */
async function fatalExtension(name: string, ending: string): Promise<URL> {
  const file = join(folder, `${name}.mjs`);
  await writeFile(
    file,
    `import { BroadcastChannel, isMainThread } from 'node:worker_threads';
if (!isMainThread) {
  const channel = new BroadcastChannel('${name}').unref();
  channel.onmessage = () => { ${ending} };
}
`,
  );
  return pathToFileURL(file);
}

function end(name: string): void {
  const channel = new BroadcastChannel(name);
  channel.postMessage('now');
  channel.close();
}

const gone = (why: RegExp) => ({ code: 'ERR_ROCE_CLOSED', message: expect.stringMatching(why) });

describe.runIf(isBuilt).each([
  ['throws', "throw new Error('the extension broke')", /the NIC's thread has ended: the extension broke/],
  ['exits', 'process.exit(3)', /the NIC's thread has ended: exit code 3/],
])('a thread whose extension %s', (name, ending, why) => {
  it('rejects what is pending and what comes after, stops the queue pairs, and closes', async () => {
    const { connect, listen, openDevice } = await builtApi();
    const extensions = [await fatalExtension(name, ending)];
    const client = await openDevice({ address: CLIENT, udpPort: 0, engine: 'worker', extensions });
    const server = await openDevice({ address: SERVER, udpPort: 0 });
    const listener = await listen(server, { port: 0, region: server.allocate(4096) });
    const [, connection] = await Promise.all([
      listener.accept(),
      connect(client, { host: SERVER, port: listener.port }),
    ]);
    const cq = await client.createCq(16);
    const waiting = [cq.next(), cq.wait(), connection.receive()].map((promise) =>
      expect(promise).rejects.toMatchObject(gone(why)),
    );
    const fatal = new Promise((resolve) => client.events.once('DEVICE_FATAL', resolve));

    end(name);
    expect(await fatal).toMatchObject(gone(why));
    await Promise.all(waiting);
    expect(connection.qp.state).toBe('ERR');
    await expect(client.createPd()).rejects.toMatchObject(gone(why));
    await expect(connection.write(Buffer.alloc(8), 0)).rejects.toThrow();
    await client.close();

    // Honest others go on: the server takes the next peer.
    const next: RdmaDevice = await openDevice({ address: CLIENT, udpPort: 0, engine: 'worker' });
    const [, again] = await Promise.all([listener.accept(), connect(next, { host: SERVER, port: listener.port })]);
    await again.write(Buffer.alloc(8), 0);
    await next.close();
    await server.close();
  });
});

it.runIf(isBuilt)('an extension that ends the thread while it is loaded fails the opening', async () => {
  const { openDevice } = await builtApi();
  const file = join(folder, 'at-once.mjs');
  await writeFile(file, "import { isMainThread } from 'node:worker_threads';\nif (!isMainThread) process.exit(4);\n");
  await expect(
    openDevice({ address: CLIENT, udpPort: 0, engine: 'worker', extensions: [pathToFileURL(file)] }),
  ).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED', message: expect.stringContaining('ended with code 4') });
});
