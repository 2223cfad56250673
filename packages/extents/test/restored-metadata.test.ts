/** An earlier copy of the manager's metadata comes back: nodes delete nothing on its behalf, and the manager says so. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { inVirtualTime } from '../../../test/contracts/metadata-contract.js';
import { until } from '../../../test/support/virtual-time.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { ExtentStore } from '../src/extent-store.js';
import { LeaderMetadata } from '../src/leader-metadata.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import { MetadataCheck } from '../src/metadata-check.js';
import { MetadataHistory } from '../src/metadata-history.js';
import { Cluster, type ClusterOptions, EXTENT_BYTES, TIMING } from './cluster.js';

const STREAM = 's';
const LONG_MS = 20 * TIMING.reportMs;

afterEach(() => void vi.restoreAllMocks());

describe('the history of the metadata', () => {
  async function begun() {
    const { metadata, settled } = await inVirtualTime(async (events) => new MemoryMetadata(virtualClock(events)));
    const start = async (branch: string) => {
      const history = new MetadataHistory(metadata);
      await settled(history.begin(branch));
      return history;
    };
    const change = (history: MetadataHistory, key: string) =>
      settled(history.commit({ compare: [], put: [{ key, value: 'x' }] }));
    return { start, change };
  }

  it('has what each start has committed, and nothing later', async () => {
    const { start, change } = await begun();
    const first = await start('a');
    await change(first, 'k');
    const { version } = first;
    expect(version).toEqual({ branch: 'a', number: 2 });
    const second = await start('b');
    expect(second.has(version)).toBe(true);
    expect(second.has({ branch: 'a', number: 3 })).toBe(false);
    expect(second.has({ branch: 'b', number: 3 })).toBe(true);
    expect(second.has({ branch: 'b', number: 4 })).toBe(false);
    expect(second.has({ branch: 'of another copy', number: 1 })).toBe(false);
  });

  it('goes on counting where a transaction did not happen', async () => {
    const { start } = await begun();
    const history = await start('a');
    expect(await history.commit({ compare: [{ key: 'k', version: 9 }], put: [] })).toBe(0);
    expect(history.version.number).toBe(1);
    await history.commit({ compare: [], put: [] });
    expect(history.version.number).toBe(3);
  });
});

/** A cluster with a stream of one record, a backup of its metadata, and another record. */
async function withBackup(options: ClusterOptions = {}) {
  const cluster = new Cluster(1, options);
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  await run(cluster.start());
  const ask = cluster.managerFrom('client');
  await run(ask.call('createStream', { stream: STREAM }, 1000));
  const append = async (text: string) => {
    const { writer } = await run(cluster.writer(STREAM, text));
    await run(writer.append(Buffer.from(text)));
    await run(writer.close());
  };
  await append('before');
  await run(cluster.sleep(LONG_MS));
  const backup = await run(cluster.imageOfMetadata());
  const snapshot = cluster.store.transactions.length;
  await append('after');
  const restore = async (image: typeof backup) => {
    cluster.killManager();
    await run(cluster.restoreMetadata(image));
    await run(cluster.startManager());
  };
  const files = () => cluster.machines.map(({ disk }) => [...disk.files.keys()].sort().join());
  const read = async () => {
    const { extents } = await run(ask.call('locate', { stream: STREAM }, 1000));
    const found: string[] = [];
    const scan = async () => {
      for await (const { bytes, head } of cluster.reader().scan(extents))
        found.push(bytes.subarray(bytes.length - 512).toString('latin1', 68, 68 + head.length));
    };
    await run(scan());
    return found;
  };
  return { cluster, run, ask, backup, snapshot, restore, files, read };
}

const code = (remoteCode: string) => expect.objectContaining({ remoteCode });

describe('a manager whose metadata is an older copy', () => {
  it('stops when a node has seen later metadata, says so, and nothing is deleted', async () => {
    const { cluster, run, ask, backup, restore, files } = await withBackup();
    const before = files();
    await restore(backup);
    await run(cluster.sleep(LONG_MS));
    expect(files()).toEqual(before);
    await expect(run(ask.call('locate', { stream: STREAM }, 1000))).rejects.toEqual(code('OUTDATED'));
    const { metadata } = await run(ask.call('status', {}, 1000));
    expect(metadata.state).toBe('outdated');
    expect(metadata.reason).toMatch(/the metadata is an older copy: node \d has seen transaction \d+/);
  });

  it('has done no harm: the latest metadata comes back, and everything is read', async () => {
    const { cluster, run, backup, restore, read } = await withBackup();
    cluster.killManager();
    const latest = await run(cluster.imageOfMetadata());
    await restore(backup);
    await run(cluster.sleep(LONG_MS));
    await restore(latest);
    await run(cluster.sleep(LONG_MS));
    expect(await read()).toEqual(['before', 'after']);
  });

  it('answers nothing before enough nodes have reported', async () => {
    const { cluster, run, ask, backup, restore } = await withBackup();
    const away = cluster.machines.slice(2);
    for (const { name } of away) cluster.network.cut(name, 'manager');
    await restore(backup);
    await expect(run(ask.call('locate', { stream: STREAM }, 1000))).rejects.toEqual(code('OUTDATED'));
    cluster.network.heal();
  });

  it('waits where the nodes that have seen more are away', async () => {
    const { cluster, run, ask, restore } = await withBackup();
    for (const { name } of cluster.machines.slice(2)) cluster.network.cut(name, 'manager');
    cluster.killManager();
    await restore(await run(cluster.imageOfMetadata()));
    await run(cluster.sleep(LONG_MS));
    await expect(run(ask.call('locate', { stream: STREAM }, 1000))).rejects.toEqual(code('UNVERIFIED'));
    cluster.network.heal();
    await run(cluster.sleep(LONG_MS));
    expect((await run(ask.call('locate', { stream: STREAM }, 1000))).extents).toHaveLength(2);
  });

  it('would have nodes delete what it does not know, if it asked nobody', async () => {
    vi.spyOn(MetadataCheck.prototype, 'hear').mockImplementation(() => {});
    vi.spyOn(MetadataCheck.prototype, 'isVerified', 'get').mockReturnValue(true);
    vi.spyOn(MetadataHistory.prototype, 'version', 'get').mockReturnValue({ branch: 'x', number: 1e9 });
    const { cluster, run, backup, restore, files } = await withBackup();
    const before = files();
    await restore(backup);
    await run(cluster.sleep(LONG_MS));
    expect(files()).not.toEqual(before);
  });

  it('is refused by the nodes themselves, if it does not check what they have seen', async () => {
    vi.spyOn(MetadataCheck.prototype, 'hear').mockImplementation(() => {});
    vi.spyOn(MetadataCheck.prototype, 'isVerified', 'get').mockReturnValue(true);
    const { cluster, run, backup, restore, files } = await withBackup();
    const before = files();
    await restore(backup);
    await run(cluster.sleep(TIMING.reportMs));
    expect(files()).toEqual(before);
  });
});

describe('a store that is restored from a snapshot while three managers run', () => {
  async function restored() {
    const { cluster, run, ask, snapshot, files, read } = await withBackup({ managers: 3 });
    await run(cluster.sleep(LONG_MS));
    const before = files();
    await run(cluster.store.restore(snapshot));
    const locate = () => run(ask.call('locate', { stream: STREAM }, 1000));
    const status = () => run(ask.call('status', {}, 1000));
    return { cluster, run, ask, before, files, read, locate, status };
  }

  it('ends the term of the leader, the next one stops, and no extent is deleted and no folder refused', async () => {
    const { cluster, run, ask, before, files, read, locate, status } = await restored();
    await run(cluster.sleep(LONG_MS));
    expect(files()).toEqual(before);
    await expect(locate()).rejects.toEqual(code('OUTDATED'));
    await run(ask.call('recover', {}, 1000));
    await run(cluster.sleep(LONG_MS));
    expect(await read()).toEqual(['before', 'after']);
    expect((await status()).nodes.map(({ state }) => state)).toEqual(Array(5).fill('up'));
  });

  it.each([true, false])(
    'has folders refused, or extents deleted, where the leader does not look for its last change',
    async (hasMarks) => {
      vi.spyOn(LeaderMetadata.prototype, 'checkTerm').mockResolvedValue();
      if (!hasMarks) vi.spyOn(ExtentStore.prototype, 'setMark').mockResolvedValue();
      const { cluster, run, before, files, status } = await restored();
      await run(cluster.sleep(LONG_MS));
      if (hasMarks) expect((await status()).counters.refusedDisks).toBeGreaterThan(0);
      else expect(files()).not.toEqual(before);
    },
  );

  it('is not read in part', async () => {
    const { locate } = await restored();
    await expect(locate()).rejects.toEqual(code('OUTDATED'));
  });
});

describe('recovery from the nodes', () => {
  it('adds the extents that an older copy does not know, and the cluster goes on', async () => {
    const { cluster, run, ask, backup, restore, read } = await withBackup();
    await restore(backup);
    await run(cluster.sleep(LONG_MS));
    const report = await run(ask.call('recover', {}, 1000));
    expect(report).toEqual({
      ...{ certain: [1, 2], open: [], missing: [], unknown: [], silent: [] },
      streams: [{ stream: STREAM, extents: [2] }],
    });
    expect(await read()).toEqual(['before', 'after']);
    const { writer } = await run(cluster.writer(STREAM, 'later'));
    await run(writer.append(Buffer.from('later')));
    await run(writer.close());
    cluster.killManager();
    await run(cluster.startManager());
    await run(cluster.sleep(LONG_MS));
    expect(await read()).toEqual(['before', 'after', 'later']);
  });

  it('seals what was open, and gives out no number twice', async () => {
    const { cluster, run, ask, restore, read } = await withBackup();
    const backup = await run(cluster.imageOfMetadata());
    const { writer } = await run(cluster.writer(STREAM, 'dead'));
    await run(Promise.all(['a', 'b'].map((text) => writer.append(Buffer.from(text)))));
    await restore(backup);
    await run(cluster.sleep(LONG_MS));
    const report = await run(ask.call('recover', {}, 1000));
    expect(report.open).toEqual([writer.extent!.extent]);
    const next = await run(cluster.writer(STREAM, 'next'));
    await run(next.writer.append(Buffer.from('c')));
    expect(next.writer.extent!.extent).toBeGreaterThan(writer.extent!.extent);
    await run(next.writer.close());
    expect(await read()).toEqual(['before', 'after', 'a', 'b', 'c']);
  });

  it('knows coded extents by their fragments', async () => {
    const cluster = new Cluster(1, { nodes: 9, code: 'rs-6-3' });
    const run = <T>(work: Promise<T>) => until(cluster.events, work);
    await run(cluster.start());
    const ask = cluster.managerFrom('client');
    await run(ask.call('createStream', { stream: STREAM }, 1000));
    const backup = await run(cluster.imageOfMetadata());
    const { writer } = await run(cluster.writer(STREAM, 'owner'));
    await run(writer.append(Buffer.alloc(EXTENT_BYTES - 1000, 7)));
    await run(writer.close());
    await run(cluster.sleep(40 * TIMING.reportMs));
    expect((await run(ask.call('status', {}, 1000))).extents.coded).toBe(1);
    cluster.killManager();
    await run(cluster.restoreMetadata(backup));
    await run(cluster.startManager());
    await run(cluster.sleep(LONG_MS));
    expect((await run(ask.call('recover', {}, 1000))).certain).toEqual([1]);
    const { extents } = await run(ask.call('locate', { stream: STREAM }, 1000));
    expect(extents[0].coded!.fragments).toHaveLength(9);
    const records: number[] = [];
    const scan = async () => {
      for await (const { head } of cluster.reader().scan(extents)) records.push(head.length);
    };
    await run(scan());
    expect(records).toEqual([EXTENT_BYTES - 1000]);
  });

  it('begins with nothing, in the cluster of its nodes', async () => {
    const { cluster, run, ask, restore, read } = await withBackup();
    cluster.isRecovering = true;
    await restore([]);
    await run(cluster.sleep(LONG_MS));
    await expect(run(ask.call('locate', { stream: STREAM }, 1000))).rejects.toEqual(code('UNVERIFIED'));
    expect((await run(ask.call('recover', {}, 1000))).streams).toEqual([{ stream: STREAM, extents: [1, 2] }]);
    await run(cluster.sleep(LONG_MS));
    expect(await read()).toEqual(['before', 'after']);
    expect((await run(ask.call('introduce', {}, 1000))).node).toBe(cluster.machines.length + 1);
  });

  it('says which nodes did not answer', async () => {
    const { cluster, run, ask, backup, restore } = await withBackup();
    const silent = cluster.machines[4];
    cluster.network.cut(silent.name, 'manager');
    const { writer } = await run(cluster.writer(STREAM, 'owner'));
    await run(writer.append(Buffer.from('x')));
    await restore(backup);
    await run(cluster.sleep(LONG_MS));
    const report = await run(ask.call('recover', {}, 1000));
    expect(report.silent).toEqual([silent.number]);
    expect((await run(ask.call('status', {}, 1000))).metadata.state).toBe('current');
  });
});

it('a state that owners depend on is shown to all replicas before the first append', async () => {
  const { cluster } = await withBackup();
  const seen = cluster.machines.map(({ disk }) => disk.files.get('node')!.durable.toString('latin1'));
  expect(seen.every((text) => text.includes('"seen"'))).toBe(true);
});
