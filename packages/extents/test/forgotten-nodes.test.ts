/** What a manager keeps of nodes that come and go, and of extents that are deleted: nothing, after a while. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { CodingRepair } from '../src/coding/coding-repair.js';
import type { CodeName } from '../src/coding/erasure-code.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import { RepairLoop } from '../src/repair-loop.js';
import { StreamManager } from '../src/stream-manager.js';
import { Cluster, EXTENT_BYTES, TIMING } from './cluster.js';
import { runSeed } from './run-seed.js';

const ROUNDS = 30;
const NODES_A_ROUND = 100;
const FORGET_MS = 400;
/** Longer than a node is remembered, and a look of the manager more. */
const LONG_MS = FORGET_MS + 4 * TIMING.repairMs;

async function managerAlone(code?: CodeName) {
  const events = new EventQueue();
  const clock = virtualClock(events);
  const metadata = new MemoryMetadata(clock);
  const manager = new StreamManager({
    metadata,
    nodes: { call: () => Promise.reject(new Error('nobody is there')) },
    clock,
    random: new SeededRandom(1).stream('manager'),
    timing: { ...TIMING, forgetMs: FORGET_MS },
    extentBytes: EXTENT_BYTES,
    code,
    confirmLead: async () => {},
    managers: async () => [],
  });
  await manager.start();
  const sleep = (ms: number) => until(events, new Promise<void>((resolve) => events.after(ms * 1e6, resolve)));
  return { manager, metadata, sleep };
}

const names = (cluster: Cluster) =>
  cluster.manager!.handle('status', {}).then(({ nodes }) => nodes.map(({ node, state }) => `${node} ${state}`));

describe('a manager forgets', () => {
  it('nodes that come with empty folders and go, in its memory and in its metadata', async () => {
    const { manager, metadata, sleep } = await managerAlone();
    const upkeep = new RepairLoop(manager);
    for (let round = 0; round < ROUNDS; round++) {
      for (let k = 0; k < NODES_A_ROUND; k++) {
        const { node, cluster } = await manager.handle('introduce', {});
        await manager.handle('join', { node, cluster, lives: 1, address: `10.0.0.1:${node}`, domain: `d${node}` });
      }
      await sleep(LONG_MS);
      await upkeep.look();
    }
    await manager.handle('introduce', {});
    expect([...manager.live.all()]).toHaveLength(0);
    expect(await metadata.list('node/')).toHaveLength(0);
    const { node } = await manager.handle('introduce', {});
    expect(node).toBe(ROUNDS * NODES_A_ROUND + 2); // Numbers are never given out twice.
  });

  it('when extents were sealed that are deleted before they are coded', async () => {
    const { manager } = await managerAlone('rs-6-3');
    const coding = new CodingRepair(manager);
    const records = Array.from({ length: 100 }, (_, k) => ({
      ...{ extent: k + 1, key: '', version: 1 },
      value: { epoch: 2, sealed: 1 << 20, replicas: [] },
    }));
    for (const record of records) await coding.consider(record);
    expect(coding.waiting).toBe(100);
    coding.forget(records.slice(99));
    expect(coding.waiting).toBe(1);
  });
});

describe('a node that the manager does not hear of for long', () => {
  it('has its place and its number again as soon as it is back, if it had nothing', async () => {
    const cluster = new Cluster(1, { forgetMs: FORGET_MS });
    const run = <T>(work: Promise<T>) => until(cluster.events, work);
    await run(cluster.start());
    const [machine] = cluster.machines;
    cluster.network.cut(machine.name, 'manager');
    await run(cluster.sleep(TIMING.downMs + TIMING.reportMs));
    expect(await run(names(cluster))).toContain(`${machine.number} down`);
    await run(cluster.sleep(LONG_MS));
    expect(await run(names(cluster))).toHaveLength(cluster.machines.length - 1);
    cluster.network.heal();
    await run(cluster.sleep(4 * TIMING.reportMs));
    expect(await run(names(cluster))).toContain(`${machine.number} up`);
  });

  it('is known as long as an extent has nowhere else to go', async () => {
    const cluster = new Cluster(1, { nodes: 3, forgetMs: FORGET_MS });
    const run = <T>(work: Promise<T>) => until(cluster.events, work);
    await run(cluster.start());
    await run(cluster.managerFrom('client').call('createStream', { stream: 's' }, 1000));
    const { writer } = await run(cluster.writer('s', 'owner'));
    await run(writer.append(Buffer.alloc(100)));
    await run(writer.close());
    cluster.network.cut(cluster.machines[0].name, 'manager');
    await run(cluster.sleep(2 * LONG_MS));
    expect(await run(names(cluster))).toContain(`${cluster.machines[0].number} down`);
  });
});

it.each([1, 3])(
  'what was promised is kept where nodes are forgotten in the middle of faults, managers: %i',
  async (managers) => {
    for (let seed = 3; seed <= 15; seed += 3)
      expect((await runSeed(seed, undefined, { managers, forgetMs: TIMING.downMs })).problems, `seed ${seed}`).toEqual(
        [],
      );
  },
);
