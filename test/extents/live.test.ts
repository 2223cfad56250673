/** A cluster on sockets and files: three nodes, a manager, an owner and a reader, over RDMA on loopback. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { listen } from '../../src/cm/listen-connect.js';
import { SeededRandom } from '../../src/core/random.js';
import { SYSTEM_CLOCK } from '../../src/driver/system-clock.js';
import { ExtentNode } from '../../src/extents/extent-node.js';
import { ExtentReader } from '../../src/extents/extent-reader.js';
import { ExtentStore } from '../../src/extents/extent-store.js';
import { FolderFiles } from '../../src/extents/live/folder-files.js';
import { CONNECTION, RdmaPeers } from '../../src/extents/live/rdma-peers.js';
import { handlersOf, MANAGER_SERVICE, NODE_SERVICE } from '../../src/extents/live/services.js';
import { MemoryMetadata } from '../../src/extents/memory-metadata.js';
import { StreamManager } from '../../src/extents/stream-manager.js';
import { StreamWriter } from '../../src/extents/stream-writer.js';
import { serveRpc } from '../../src/rpc/index.js';
import { openDevice } from '../../src/verbs/open-device.js';

const TIMING = {
  callMs: 20_000,
  copyMs: 20_000,
  reportMs: 200,
  scrubMs: 10_000,
  downMs: 60_000,
  upkeepMs: 200,
  hedgeMs: 10_000,
  retryMs: 50,
  leaseMs: 60_000,
};
const EXTENT_BYTES = 1 << 20;
const random = new SeededRandom(1).stream('live');
const clock = SYSTEM_CLOCK;
const closing: Array<() => unknown> = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

it('appends to three nodes and reads the bytes from any of them', async () => {
  const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  closing.push(() => device.close());
  const peers = new RdmaPeers(device);
  const metadata = new MemoryMetadata(clock);
  const manager = new StreamManager({
    metadata,
    nodes: peers.nodes,
    clock,
    random,
    timing: TIMING,
    extentBytes: EXTENT_BYTES,
  });
  const serve = async (service: typeof NODE_SERVICE, handle: (method: never, request: never) => Promise<object>) => {
    const listener = await listen(device, { ...CONNECTION, port: 0 });
    const server = serveRpc(listener, service, handlersOf(service, handle as never) as never);
    closing.push(
      () => listener.close(),
      () => server.close(),
    );
    return `127.0.0.1:${listener.port}`;
  };
  const managerAddress = await serve(MANAGER_SERVICE, (method, request) => manager.handle(method, request));
  for (const node of [1, 2, 3]) {
    const folder = await mkdtemp(join(tmpdir(), 'extents-'));
    closing.push(() => rm(folder, { recursive: true }));
    const files = await FolderFiles.open(folder);
    closing.push(() => files.close());
    const store = await ExtentStore.open(files, node);
    let served: ExtentNode | undefined;
    const address = await serve(NODE_SERVICE, (method, request) => served!.handle(method, request));
    const parts = { nodes: peers.nodes, manager: peers.manager(managerAddress), clock, timing: TIMING };
    served = new ExtentNode({ store, ...parts, address, domain: `domain${node}` });
    await served.start();
    closing.push(() => served.stop());
    closing.push(() => store.close());
  }
  closing.push(() => peers.close());
  const ways = { nodes: peers.nodes, manager: peers.manager(managerAddress), clock, timing: TIMING };
  await ways.manager.call('createStream', { stream: 'log' }, TIMING.callMs);
  const { writer } = await StreamWriter.open({ stream: 'log', owner: 'me' }, { ...ways, extentBytes: EXTENT_BYTES });
  const values = Array.from({ length: 12 }, (_, k) => Buffer.alloc(1 + k * 30_000, k + 1));
  const locations = await Promise.all(values.map((value) => writer.append(value)));
  expect(writer.counters).toEqual({ appends: 12, failovers: 0, resent: 0 });
  const reader = new ExtentReader({ ...ways, random });
  for (const [k, { extent, offset }] of locations.entries()) {
    const { data } = await reader.read(extent, offset, 0, Math.ceil(values[k].length / 4096));
    expect(data.equals(values[k])).toBe(true);
  }
  const place = await ways.manager.call('locateExtent', { extent: locations[0].extent }, TIMING.callMs);
  const stored = place.replicas.map((replica) =>
    ways.nodes.call(
      replica,
      'read',
      { extent: place.extent, offset: locations[0].offset, first: 0, count: 1 },
      TIMING.callMs,
    ),
  );
  for (const { data } of await Promise.all(stored)) expect(Buffer.from(data).equals(values[0])).toBe(true);
  await expect(ways.nodes.call(place.replicas[0], 'fence', { extent: -1, epoch: 1 }, TIMING.callMs)).rejects.toThrow(
    'no request to fence',
  );
  await writer.close();
  const { nodes, extents } = await ways.manager.call('status', {}, TIMING.callMs);
  expect(nodes.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
  expect(extents.underReplicated).toBe(0);
});
