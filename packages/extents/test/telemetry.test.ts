/** The document of a manager for the dashboard. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openDevice } from '../../../src/verbs/open-device.js';
import { eventually } from '../../../test/support/eventually.js';
import { RuntimeFolder } from '../../../test/support/runtime-folder.js';
import type { ClusterDocument } from '../../command/src/programs/cluster-document.js';
import { askDocument, findPrograms } from '../../command/src/programs/program-client.js';
import { parseWatched } from '../../command/src/programs/watched.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { clusterDocuments, serveClusterDocument, type WatchedManager } from '../src/commands/telemetry.js';
import { openExtents, serveManager, serveNode } from '../src/index.js';
import type { ClusterStatus } from '../src/messages.js';
import { notLeader } from '../src/not-leader.js';

const ADDRESS = '192.0.2.1:18528';
const OTHER = '192.0.2.2:18528';
const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const node = (number: number, facts: Partial<ClusterStatus['nodes'][number]>): ClusterStatus['nodes'][number] => ({
  node: number,
  address: `192.0.2.3:${number}`,
  domain: 'rack',
  state: 'up',
  silentMs: 100,
  replicas: 1,
  fragments: 0,
  usedBytes: 4096,
  freeBytes: 1e9,
  damaged: 0,
  repaired: 0,
  ...facts,
});

function statusWith(...nodes: ClusterStatus['nodes']): ClusterStatus {
  return {
    cluster: 'c0ffee',
    metadata: { state: 'current' },
    managers: [{ address: ADDRESS, leads: true, since: '2026-01-01T00:00:00.000Z' }],
    nodes,
    streams: [{ stream: 'log', extents: 1, coded: 0, sealedBytes: 5 }],
    nodesNeeded: 3,
    extents: { open: 1, sealed: 0, coded: 0, underReplicated: 0, unavailable: 0, copying: 0, coding: 0 },
    waiting: [],
    counters: { seals: 1, copies: 2, codings: 3, rebuilds: 4, deleted: 5, refusedDisks: 6 },
  };
}

const managerThat = (status: () => Promise<ClusterStatus>, rest: Partial<WatchedManager> = {}): WatchedManager => ({
  address: ADDRESS,
  status,
  clusterName: async () => 'c0ffee',
  ...rest,
});

describe('the document of a manager', () => {
  it('is the status of the cluster, and says which nodes are late', async () => {
    const status = statusWith(
      node(1, {}),
      node(2, { silentMs: 2400 }),
      node(3, { silentMs: 2600 }),
      node(4, { silentMs: 9000, state: 'down' }),
      node(5, { state: 'read-only', readOnly: 'the disk is full' }),
      node(6, { state: 'read-only', readOnly: 'the disk is full', silentMs: 2600 }),
    );
    const document = await clusterDocuments(managerThat(async () => status))();
    expect(parseWatched(document)).toEqual(document);
    expect(document).toMatchObject({ kind: 'cluster', address: ADDRESS, leader: ADDRESS, cluster: 'c0ffee' });
    expect(document.status!.nodes.map(({ state }) => state)).toEqual([
      'up',
      'up',
      'suspect',
      'down',
      'read-only',
      'suspect',
    ]);
    expect(document.status).toMatchObject({ extents: status.extents, counters: status.counters });
    expect(document.status!.streams).toEqual([{ ...status.streams[0], owner: null }]);
    expect(document.status!.nodes[0]).toEqual({ ...status.nodes[0], readOnly: null });
  });

  it('of one that does not lead says who does, as far as it knows', async () => {
    const refusing = (leader?: string) => managerThat(() => Promise.reject(notLeader(ADDRESS, leader)));
    const common = { status: null, trouble: null, cluster: 'c0ffee' };
    expect(await clusterDocuments(refusing(OTHER))()).toMatchObject({ leader: OTHER, ...common });
    expect(await clusterDocuments(refusing())()).toMatchObject({ leader: null, ...common });
  });

  it('says why one that leads cannot tell, and has no name where nobody has led', async () => {
    const failing = managerThat(() => Promise.reject(new Error('etcd is away')), {
      clusterName: async () => undefined,
    });
    const document = await clusterDocuments(failing)();
    expect(document).toMatchObject({ leader: ADDRESS, status: null, trouble: 'etcd is away', cluster: null });
  });

  it('comes in time when the metadata does not answer, and asks them once', async () => {
    const events = new EventQueue();
    let asked = 0;
    let answer: (status: ClusterStatus) => void = () => {};
    const hanging = managerThat(() => {
      asked++;
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const next = clusterDocuments(hanging, virtualClock(events));
    const both = [next(), next()];
    events.run({ untilNs: 999e6 });
    const early = await Promise.race([Promise.race(both), new Promise((resolve) => setImmediate(resolve, 'nothing'))]);
    expect(early).toBe('nothing');
    events.run({ untilNs: 1000e6 });
    for (const document of await Promise.all(both)) expect(document.trouble).toBe('its metadata does not answer');
    expect(asked).toBe(1);
    const third = next();
    answer(statusWith(node(1, {})));
    expect((await third).status!.nodes).toHaveLength(1);
    expect(asked).toBe(1);
    const known = next();
    expect(asked).toBe(2);
    events.run({ untilNs: 2000e6 });
    expect((await known).status!.nodes).toHaveLength(1); // What it said a second ago.
    const unknown = next();
    events.run({ untilNs: 12_000e6 });
    expect((await unknown).trouble).toBe('its metadata does not answer');
    expect(asked).toBe(2);
  });

  it('is that of a real manager with a node, on a control socket that goes with it', async () => {
    const runtime = await RuntimeFolder.take('extents');
    closing.push(() => runtime[Symbol.asyncDispose]());
    const folder = await mkdtemp(join(tmpdir(), 'rocev2-extents-'));
    closing.push(() => rm(folder, { recursive: true }));
    const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
    closing.push(() => device.close());
    const manager = await serveManager({ device, folder: join(folder, 'manager'), port: 0 });
    closing.push(() => manager.close());
    await serveClusterDocument(manager, false);
    expect(await findPrograms(1)).toEqual([]);
    const telemetry = await serveClusterDocument(manager, true);
    const server = await serveNode({ device, folder: join(folder, 'node'), manager: manager.address, domain: '<b>' });
    closing.push(() => server.close());
    const client = await openExtents({ device, manager: manager.address });
    closing.push(() => client.close());
    const [{ socketPath }] = await findPrograms(1);
    const asked = async () => (await askDocument({ socketPath }, 1)) as ClusterDocument;
    await eventually(async () => (await asked()).status!.nodes.some(({ freeBytes }) => freeBytes > 0));
    const { status, cluster, address } = await asked();
    const { nodes, counters, extents, ...told } = await client.status();
    expect(status!.nodes).toMatchObject([{ node: 1, address: server.address, domain: '<b>', state: 'up' }]);
    expect(status).toMatchObject({ counters, extents, streams: [] });
    expect([cluster, address]).toEqual([told.cluster, manager.address]);
    expect(status!.nodes[0].silentMs).toBeLessThan(5000);
    await telemetry[Symbol.asyncDispose]();
    expect(await findPrograms(1)).toEqual([]);
  });
});
