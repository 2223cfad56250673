/** The folder of one node is replaced by an earlier copy whose count of starts fits. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { until } from '../../../test/support/virtual-time.js';
import { ExtentStore } from '../src/extent-store.js';
import { Cluster, type ClusterOptions, emptyJournal, type Machine, TIMING } from './cluster.js';

const CHECKPOINT_MS = TIMING.checkpointMs + 3 * TIMING.reportMs;
const STREAM = 's';

afterEach(() => void vi.restoreAllMocks());

async function started(options: ClusterOptions = {}) {
  const cluster = new Cluster(1, options);
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  await run(cluster.start());
  const ask = cluster.managerFrom('client');
  await run(ask.call('createStream', { stream: STREAM }, 1000));
  const { writer } = await run(cluster.writer(STREAM, 'owner'));
  const append = () => run(writer.append(Buffer.from('a record')));
  await append();
  await run(cluster.sleep(CHECKPOINT_MS));
  const machine = cluster.machineOf(writer.extent!.replicas[0])!;
  const restart = async (one: Machine) => {
    cluster.stopNode(one, false);
    void cluster.startNode(one);
    await run(cluster.sleep(CHECKPOINT_MS));
  };
  const restore = async (image: ReadonlyMap<string, Buffer>) => {
    cluster.stopNode(machine, false);
    machine.disk.restore(image);
    void cluster.startNode(machine);
    await run(cluster.sleep(CHECKPOINT_MS));
  };
  const startElsewhere = async (image: ReadonlyMap<string, Buffer>) => {
    const other = cluster.machines.find(({ number }) => number !== machine.number)!;
    cluster.stopNode(other, false);
    other.disk.restore(image);
    void cluster.startNode(other);
    await run(cluster.sleep(CHECKPOINT_MS));
  };
  const status = () => run(ask.call('status', {}, 1000));
  const refused = async () => (await status()).nodes.filter((one) => one.refused !== undefined);
  return { cluster, run, append, machine, restart, restore, startElsewhere, status, refused };
}

describe('a node whose folder is an older copy', () => {
  it('is refused if the copy was made before the last start', async () => {
    const { machine, restart, restore, refused, status } = await started();
    const { number } = machine;
    const image = machine.disk.image();
    await restart(machine);
    expect((await status()).counters.refusedDisks).toBe(0);
    await restore(image);
    expect(await refused()).toEqual([
      expect.objectContaining({ node: number, state: 'down', refused: expect.stringContaining('--trust-folder') }),
    ]);
    expect(machine.number).not.toBe(number); // The cluster of this test empties refused folders.
  });

  it('is refused if the copy was made and restored within one life, before the last checkpoint', async () => {
    const { cluster, run, append, machine, restore, refused } = await started();
    const image = machine.disk.image();
    await append();
    await run(cluster.sleep(CHECKPOINT_MS));
    await restore(image);
    expect(await refused()).toHaveLength(1);
  });

  it('is accepted where marks are not written', async () => {
    vi.spyOn(ExtentStore.prototype, 'setMark').mockResolvedValue();
    const { machine, restart, restore, refused } = await started();
    const image = machine.disk.image();
    await restart(machine);
    await restore(image);
    expect(await refused()).toEqual([]);
  });

  it('joins with the latest folder, and is no longer listed as refused', async () => {
    const { machine, restart, restore, refused, status } = await started();
    const { number } = machine;
    const image = machine.disk.image();
    await restart(machine);
    const latest = machine.disk.image();
    await restore(image);
    await restore(latest);
    expect(machine.number).toBe(number);
    expect(await refused()).toEqual([]);
    expect((await status()).nodes.find(({ node }) => node === number)?.state).toBe('up');
  });

  it('joins if the operator trusts the folder', async () => {
    const { machine, restart, restore, refused } = await started();
    const { number } = machine;
    const image = machine.disk.image();
    await restart(machine);
    machine.trustsFolder = true;
    await restore(image);
    expect(machine.number).toBe(number);
    expect(await refused()).toEqual([]);
  });
});

describe('a copy of a folder that is started on another machine', () => {
  it('does not make its node a refused one, live or down, and is listed as a copy', async () => {
    const { cluster, run, machine, restart, startElsewhere, status, refused } = await started();
    const { number, name } = machine;
    const image = machine.disk.image();
    await restart(machine);
    const listed = async () => (await status()).nodes.find(({ node }) => node === number)!;
    await startElsewhere(image);
    expect(await listed()).toMatchObject({ address: name, state: 'up', copy: expect.stringContaining('machine') });
    cluster.stopNode(machine, false);
    await run(cluster.sleep(TIMING.downMs));
    await startElsewhere(image);
    expect(await refused()).toEqual([]);
    expect(await listed()).toMatchObject({ address: name, state: 'down', copy: expect.stringContaining('older copy') });
    await restart(machine);
    expect((await listed()).copy).toBeUndefined();
    expect(await refused()).toEqual([]);
  });

  it('does not join while its node reports, even with the latest marks', async () => {
    const { machine, startElsewhere, status } = await started();
    const { number, name } = machine;
    await startElsewhere(machine.disk.image());
    const listed = (await status()).nodes.find(({ node }) => node === number)!;
    expect(listed).toMatchObject({ address: name, state: 'up' });
    expect(listed.copy).toMatch(new RegExp(`node ${number} runs with the folder ${name}`));
  });

  it('does not take the place of its node while a manager that has just started verifies its metadata', async () => {
    const { cluster, run, machine, restart, status } = await started();
    const { number, name } = machine;
    const image = machine.disk.image();
    await restart(machine);
    const other = cluster.machines.find((one) => one !== machine)!;
    cluster.killManager();
    for (const one of cluster.machines) if (one !== machine) cluster.stopNode(one, false);
    await run(cluster.startManager());
    other.disk.restore(image);
    void cluster.startNode(other);
    await run(cluster.sleep(CHECKPOINT_MS));
    const { metadata, nodes, counters } = await status();
    expect(metadata.state).toBe('unverified');
    expect(counters.refusedDisks).toBe(1);
    expect(nodes.find(({ node }) => node === number)).toMatchObject({ address: name, state: 'up' });
  });
});

describe('a node that does not start with its own journal', () => {
  const JOURNAL_BYTES = 64 << 10;

  it('is listed as refused, with what to do, until it starts with the latest one', async () => {
    const { cluster, run, machine, restore, refused, status } = await started({ journalBytes: JOURNAL_BYTES });
    const { number, disk } = machine;
    cluster.stopNode(machine, false);
    const [latest, journal] = [disk, machine.journal!].map((one) => one.image());
    emptyJournal(machine.journal, JOURNAL_BYTES);
    await restore(latest);
    expect(await refused()).toEqual([expect.objectContaining({ node: number, state: 'down' })]);
    expect((await refused())[0].refused).toMatch(
      /node \d+ does not start: the journal is not the one .*restore the latest folder and its journal/,
    );
    cluster.stopNode(machine, false);
    machine.journal!.restore(journal);
    await restore(latest);
    await run(cluster.sleep(CHECKPOINT_MS));
    expect(await refused()).toEqual([]);
    expect((await status()).nodes.find(({ node }) => node === number)?.state).toBe('up');
  });
});

describe('a node that is killed and restarted', () => {
  it('is never refused, at whichever moment of its start or its checkpoint', async () => {
    const { cluster, run, append, machine, status } = await started();
    for (let k = 0; k < 40; k++) {
      cluster.stopNode(machine, k % 2 === 0);
      void cluster.startNode(machine);
      await run(cluster.sleep(k % 8 === 7 ? CHECKPOINT_MS + k / 10 : k / 10));
      if (k % 8 === 7) await append();
    }
    await run(cluster.sleep(CHECKPOINT_MS));
    expect((await status()).counters.refusedDisks).toBe(0);
    expect((await status()).nodes.map(({ state }) => state)).toEqual(Array(5).fill('up'));
  });

  it('counts its open replicas as unverified until they are compared with others', async () => {
    const { cluster, run, machine, status } = await started();
    cluster.killManager();
    for (const one of cluster.machines) cluster.stopNode(one, false);
    for (const one of cluster.machines) if (one !== machine) void cluster.startNode(one);
    await run(cluster.startManager());
    await run(cluster.sleep(CHECKPOINT_MS));
    const unverified = async () => (await status()).nodes.reduce((sum, one) => sum + (one.unverified ?? 0), 0);
    expect(await unverified()).toBe(2);
    void cluster.startNode(machine);
    await run(cluster.sleep(10 * CHECKPOINT_MS));
    expect(await unverified()).toBe(0);
  });
});
