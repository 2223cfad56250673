/** An operator undoes the deletion of a stream. */

import { describe, expect, it } from 'vitest';
import { until } from '../../../test/support/virtual-time.js';
import { dataIn } from '../src/record.js';
import { Cluster, type ClusterOptions, TIMING } from './cluster.js';

const STREAM = 's';
const LONG_MS = 10 * TIMING.repairMs + 4 * TIMING.reportMs;
const code = (remoteCode: string) => expect.objectContaining({ remoteCode });

/** Two owners have appended a record each; then the stream was deleted. */
async function withDeletedStream(options: ClusterOptions = {}) {
  const cluster = new Cluster(1, options);
  const run = <T>(work: Promise<T>) => until(cluster.events, work);
  await run(cluster.start());
  const ask = cluster.managerFrom('client');
  await run(ask.call('createStream', { stream: STREAM }, 1000));
  for (const text of ['first', 'second']) {
    const { writer } = await run(cluster.writer(STREAM, text));
    await run(writer.append(Buffer.from(text)));
    await run(writer.close());
  }
  await run(cluster.sleep(LONG_MS));
  await run(ask.call('deleteStream', { stream: STREAM }, 1000));
  await run(cluster.sleep(LONG_MS));
  const undelete = () => run(ask.call('undelete', { stream: STREAM }, 1000));
  const read = async () => {
    const { extents } = await run(ask.call('locate', { stream: STREAM }, 1000));
    const texts: string[] = [];
    const scan = async () => {
      for await (const { head, bytes } of cluster.reader().scan(extents)) texts.push(dataIn(bytes, head).toString());
    };
    await run(scan());
    return texts;
  };
  const deleted = () =>
    cluster.machines.flatMap(({ disk }) => [...disk.files.keys()]).filter((name) => /deleted/.test(name));
  return { cluster, run, ask, undelete, read, deleted };
}

describe('a deleted stream', () => {
  it('is back with all records, and takes new ones', async () => {
    const { cluster, run, undelete, read, deleted } = await withDeletedStream();
    expect(deleted()).toHaveLength(6);
    await expect(read()).rejects.toEqual(code('MISSING'));
    expect(await undelete()).toEqual({ extents: [1, 2], silent: [] });
    await run(cluster.sleep(LONG_MS));
    expect(deleted()).toEqual([]);
    expect(await read()).toEqual(['first', 'second']);
    const { writer } = await run(cluster.writer(STREAM, 'third'));
    await run(writer.append(Buffer.from('third')));
    await run(writer.close());
    expect(await read()).toEqual(['first', 'second', 'third']);
  });

  it('is back from its fragments', async () => {
    const { cluster, run, undelete, read } = await withDeletedStream({ nodes: 9, code: 'rs-6-3' });
    expect((await undelete()).extents).toEqual([1, 2]);
    await run(cluster.sleep(LONG_MS));
    expect(await read()).toEqual(['first', 'second']);
  });

  it('is back although a node with a replica of it does not answer', async () => {
    const { cluster, run, undelete, read } = await withDeletedStream();
    const [machine] = cluster.machines;
    cluster.stopNode(machine, false);
    expect((await undelete()).silent).toEqual([machine.number]);
    await run(cluster.sleep(LONG_MS));
    expect(await read()).toEqual(['first', 'second']);
  });

  it('stays deleted after its time in quarantine', async () => {
    const { undelete } = await withDeletedStream({ keepDeletedMs: 1 });
    await expect(undelete()).rejects.toEqual(code('MISSING'));
  });

  it('does not replace another one of its name', async () => {
    const { run, ask, undelete } = await withDeletedStream();
    await run(ask.call('createStream', { stream: STREAM }, 1000));
    await expect(undelete()).rejects.toEqual(code('CONFLICT'));
  });
});
