/** Storage over NICs in threads of their own: memory is shared, completions come from elsewhere, a peer's first message may be here at once. */

import { afterEach, describe, expect, test } from 'vitest';
import { builtApi, builtStorage, isBuilt } from '../../support/built-api.js';
import { eventually } from '../../support/eventually.js';

const HOST = '127.55.0.3';
const closers: Array<() => Promise<void>> = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.runIf(isBuilt)('over the worker engine', () => {
  test('fails over under load and returns, twice', async () => {
    const { openDevice } = await builtApi();
    const { MemoryDevice, StorageClient, StorageServer } = await builtStorage();
    const devices = [];
    for (let i = 0; i < 2; i++) {
      const device = await openDevice({ engine: 'worker', address: HOST, udpPort: 0 });
      closers.push(() => device.close());
      devices.push(device);
    }
    const server = await StorageServer.open({
      disks: [new MemoryDevice(4 << 20)],
      host: HOST,
      port: 0,
      device: devices[0],
    });
    closers.push(() => server.close());
    const client = await StorageClient.connect({
      host: HOST,
      port: server.port,
      device: devices[1],
      path: { holdDownNs: 20e6, holdDownMaxNs: 100e6 },
    });
    closers.push(() => client.close());
    let running = true;
    const workers = Array.from({ length: 8 }, async (_, n) => {
      const into = Buffer.alloc(16_384);
      for (let i = 0; running; i++) {
        const data = Buffer.alloc(into.length, n + i);
        await client.disk.write(n * data.length, data);
        await client.disk.read(n * data.length, data.length, into);
        if (!into.equals(data)) throw new Error(`block ${n} is not what was written`);
      }
    });
    for (let i = 0; i < 2; i++) {
      client.failover();
      const isBack = eventually(() => client.report.failovers === i + 1 && client.report.sessions.rdma > 0);
      await Promise.race([isBack, ...workers]); // A worker ends only by failing.
    }
    running = false;
    await Promise.all(workers);
    expect(client.report).toMatchObject({ failovers: 2, crcMismatches: 0, serverRestarts: 0 });
  }, 60_000);
});
