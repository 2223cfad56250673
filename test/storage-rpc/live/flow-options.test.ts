/** What the queue pairs of storage connections are told of rate control and traffic class. */

import { afterEach, expect, test, vi } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { FlowOptions } from '../../../src/storage-rpc/live/flow-options.js';
import { StorageClient } from '../../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../../src/storage-rpc/live/storage-server.js';
import { SuEndpoint } from '../../../src/storage-rpc/live/su-endpoint.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { QueuePair } from '../../../src/verbs/queue-pair.js';

const HOST = '127.0.4.21';
const closers: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closers.splice(0).reverse()) await close();
});

async function device() {
  const opened = await openDevice({ address: HOST, udpPort: 0 });
  closers.push(() => opened.close());
  return opened;
}

/** DSCP and rate control of every queue pair that goes to RTR from here on. */
function watchQueuePairs() {
  const seen: unknown[] = [];
  const modify = vi.spyOn(QueuePair.prototype, 'modify');
  return async () => {
    for (const [{ state, av, rateControl }] of modify.mock.calls) {
      if (state === 'RTR') seen.push([av?.dscp, rateControl]);
    }
    return seen;
  };
}

const dcqcn = { name: 'dcqcn', linkRateBps: 10e9 } as const;

test('a client and its server each send with their own class and rate control', async () => {
  const seen = watchQueuePairs();
  const disks = [new MemoryDevice(1 << 20)];
  const options = { disks, host: HOST, port: 0, device: await device() };
  const server = await StorageServer.open({ ...options, rateControl: dcqcn, dscp: 'foreground' });
  closers.push(() => server.close());
  const client = await StorageClient.connect({ host: HOST, port: server.port, device: await device(), dscp: 10 });
  closers.push(() => client.close());
  const data = Buffer.alloc(100_000, 7);
  await client.disk.write(0, data);
  const back = Buffer.alloc(data.length);
  await client.disk.read(0, back.length, back);
  expect(back.equals(data)).toBe(true);
  expect(client.report.sessions.rdma).toBe(1);
  expect(new Set(await seen())).toEqual(
    new Set([
      [26, dcqcn],
      [10, undefined],
    ]),
  );
});

test('an endpoint of byte streams has them, too', async () => {
  const seen = watchQueuePairs();
  const open = async (options: FlowOptions) => {
    const endpoint = await SuEndpoint.open(await device(), options);
    closers.push(() => endpoint.close());
    return endpoint;
  };
  const listening = await open({ dscp: 'background', rateControl: { name: 'fixed', rateBps: 1e9 } });
  const port = await listening.listen(HOST, 0, () => {});
  await (await open({})).connect(HOST, port);
  expect(new Set(await seen())).toEqual(
    new Set([
      [10, { name: 'fixed', rateBps: 1e9 }],
      [undefined, undefined],
    ]),
  );
});

test.each([
  [{ dscp: 64 }, 'ERR_ROCE_OUT_OF_RANGE'],
  [{ dscp: 'middle' }, 'ERR_ROCE_UNKNOWN_NAME'],
  [{ rateControl: { name: 'dcqn' } }, 'ERR_ROCE_UNKNOWN_NAME'],
] as const)('%j is refused before anything is connected', async (options, code) => {
  const wrong = options as FlowOptions;
  await expect(StorageClient.connect({ host: HOST, port: 1, ...wrong })).rejects.toMatchObject({ code });
  await expect(StorageServer.open({ disks: [], host: HOST, port: 0, ...wrong })).rejects.toMatchObject({ code });
  await expect(SuEndpoint.open(await device(), wrong)).rejects.toMatchObject({ code });
});
