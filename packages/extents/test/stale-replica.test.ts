/** The folder of one replica comes back as it was before the last records were acknowledged. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { until } from '../../../test/support/virtual-time.js';
import type { ExtentPlace } from '../src/messages.js';
import { StreamManager } from '../src/stream-manager.js';
import { Cluster, type Machine, TIMING } from './cluster.js';

const STREAM = 's';
const BURST = 8;
const LONG_MS = 20 * TIMING.reportMs;

afterEach(() => void vi.restoreAllMocks());

/** Records are acknowledged in one burst, so that none says that another one is committed; then all nodes are killed. */
async function withStaleReplica() {
  const cluster = new Cluster(1);
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  await run(cluster.start());
  const ask = cluster.managerFrom('client');
  await run(ask.call('createStream', { stream: STREAM }, 1000));
  const { writer } = await run(cluster.writer(STREAM, 'first'));
  await run(writer.append(Buffer.from('0')));
  const replicas = writer.extent!.replicas.map((place) => cluster.machineOf(place)!);
  const [stale, ...others] = replicas;
  await run(cluster.sleep(TIMING.reportMs));
  const image = stale.disk.image();
  await run(Promise.all(Array.from({ length: BURST }, (_, k) => writer.append(Buffer.from(`${k + 1}`)))));
  for (const machine of cluster.machines) cluster.stopNode(machine, false);
  stale.disk.restore(image);
  const start = (machines: readonly Machine[]) => {
    for (const machine of machines) void cluster.startNode(machine);
    return run(cluster.sleep(LONG_MS));
  };
  const rest = cluster.machines.filter((machine) => !replicas.includes(machine));
  const locate = async () => (await run(ask.call('locate', { stream: STREAM }, 1000))).extents;
  const count = async (extents: readonly ExtentPlace[]) => {
    let records = 0;
    const scan = async () => {
      for await (const _ of cluster.reader().scan(extents)) records++;
    };
    await run(scan());
    return records;
  };
  return { cluster, run, ask, stale, others, rest, start, locate, count };
}

describe('a replica that lacks acknowledged records', () => {
  it('does not shorten its extent where the others are there', async () => {
    const { cluster, start, locate, count } = await withStaleReplica();
    await start(cluster.machines);
    const extents = await locate();
    expect(extents[0].sealed).toBeGreaterThan(0);
    expect(extents[0].replicas).toHaveLength(3);
    expect(await count(extents)).toBe(1 + BURST);
  });

  it('loses them by the rule of the shortest length', async () => {
    vi.spyOn(StreamManager.prototype, 'chooseLength').mockImplementation(({ replicas }) => ({
      length: Math.min(...replicas.map(({ length }) => length)),
    }));
    const { cluster, start, locate, count } = await withStaleReplica();
    await start(cluster.machines);
    expect(await count(await locate())).toBe(1);
  });

  it('waits for the others, reads nothing that is too short, and says why', async () => {
    const { run, ask, stale, others, rest, start, locate, count } = await withStaleReplica();
    await start([stale, ...rest]);
    const { waiting } = await run(ask.call('status', {}, 1000));
    expect(waiting).toEqual([{ extent: 1, reason: expect.stringContaining('may lack records that') }]);
    await expect(count(await locate())).rejects.toThrow();
    await start(others);
    expect((await run(ask.call('status', {}, 1000))).waiting).toEqual([]);
    expect(await count(await locate())).toBe(1 + BURST);
  });

  it('is read by a reader that began before the others came back', async () => {
    const { stale, others, rest, start, locate, count } = await withStaleReplica();
    await start([stale, ...rest]);
    const reading = count(await locate());
    await start(others);
    expect(await reading).toBe(1 + BURST);
  });

  it('is complete by the decision of the operator: what the others had is given up', async () => {
    const { run, ask, stale, rest, start, locate, count } = await withStaleReplica();
    await start([stale, ...rest]);
    expect(await run(ask.call('accept', { extents: [] }, 1000))).toEqual({ sealed: [1] });
    expect(await count(await locate())).toBe(1);
  });
});
