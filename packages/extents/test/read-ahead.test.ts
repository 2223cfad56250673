/** Records of a sealed extent are put together of pieces that are read ahead, whoever gives them. */

import { describe, expect, it } from 'vitest';
import { until } from '../../../test/support/virtual-time.js';
import { ReadAhead } from '../src/read-ahead.js';
import { dataIn } from '../src/record.js';
import { Cluster, READ_BYTES } from './cluster.js';

describe('read-ahead', () => {
  function open(end: number) {
    const asked: Array<{ from: number; to: number; answer: (value: string) => void; fail: (error: Error) => void }> =
      [];
    const ahead = new ReadAhead<string>({ from: 5, end, pieceBytes: 10 }, (from, to) => {
      return new Promise((answer, fail) => asked.push({ from, to, answer, fail }));
    });
    return { asked, ahead };
  }

  it('asks for more the more is taken, four pieces ahead at most, and gives them out in order', async () => {
    const { asked, ahead } = open(108);
    const first = ahead.take();
    expect(asked.map(({ from, to }) => [from, to])).toEqual([
      [5, 15],
      [15, 25],
      [25, 35],
    ]);
    asked[1].answer('second');
    asked[0].answer('first');
    expect([await first, await ahead.take()]).toEqual(['first', 'second']);
    expect(asked).toHaveLength(6);
    for (const { from, answer } of asked) answer(String(from));
    expect(await ahead.take()).toBe('25');
    expect(asked).toHaveLength(7);
    for (let k = 3; k < 11; k++) {
      expect(ahead.isOver).toBe(false);
      const piece = ahead.take();
      for (const { from, answer } of asked) answer(String(from));
      expect(await piece).toBe(String(5 + 10 * k));
    }
    expect(ahead.isOver).toBe(true);
    expect(asked.at(-1)).toMatchObject({ from: 105, to: 108 });
  });

  it('tells whoever takes a piece why it could not be read', async () => {
    const { asked, ahead } = open(40);
    const first = ahead.take();
    asked[1].fail(new Error('gone'));
    asked[0].answer('first');
    expect(await first).toBe('first');
    await expect(ahead.take()).rejects.toThrow('gone');
  });
});

describe('a sealed extent', () => {
  const records = Array.from({ length: 12 }, (_, k) => Buffer.alloc(k % 3 === 0 ? 9000 : 10 * k, k + 1));

  async function sealed(seed: number) {
    const cluster = new Cluster(seed, { nodes: 3 });
    const run = <T>(outcome: Promise<T>) => until(cluster.events, outcome);
    await run(cluster.start());
    const manager = cluster.managerFrom('client');
    await run(manager.call('createStream', { stream: 'log' }, 1000));
    const { writer } = await run(cluster.writer('log', 'owner'));
    await run(Promise.all(records.map((record) => writer.append(record))));
    await run(writer.close());
    const { extents } = await run(manager.call('locate', { stream: 'log' }, 1000));
    const reader = cluster.reader();
    const read = async () => {
      const found: Buffer[] = [];
      for await (const { head, bytes } of reader.scan(extents)) found.push(dataIn(bytes, head));
      return found;
    };
    return { cluster, run, extents, reader, read: () => run(read()) };
  }

  it('has a record read elsewhere, and repaired, that is damaged in a piece; others are read on', async () => {
    expect(READ_BYTES).toBeLessThan(9000);
    let met = 0;
    for (let seed = 1; seed <= 4; seed++) {
      const { cluster, run, extents, reader, read } = await sealed(seed);
      const name = `${extents[0].extent}.extent`;
      const contents = cluster.machines.map(({ disk }) => disk.files.get(name)!);
      const right = contents.map(({ durable }) => Buffer.from(durable));
      /** At this byte or before it: the zeros behind records have no CRC. */
      const damage = (which: number, at: number) => {
        if (contents[which].durable[at] === 0) return damage(which, at - 1);
        contents[which].durable[at] ^= 128;
        contents[which].cached[at] ^= 128;
      };
      const end = right[0].length;
      damage(0, end - 700 - 137 * seed);
      damage(1, end - 6000 - 251 * seed);
      damage(2, end - 11_000 - 13 * seed);
      const isRepaired = () => contents.every(({ durable }, k) => durable.equals(right[k]));
      for (let k = 0; k < 12 && !isRepaired(); k++) {
        expect(await read()).toEqual(records);
        await run(cluster.sleep(20));
      }
      met += reader.counters.damaged;
      await run(cluster.sleep(2000)); // What no reader has met, the nodes find.
      expect(isRepaired()).toBe(true);
    }
    expect(met).toBeGreaterThan(0);
  });

  it('has no record that is damaged in all replicas', async () => {
    const { cluster, extents, read } = await sealed(1);
    for (const { disk } of cluster.machines) {
      const { durable, cached } = disk.files.get(`${extents[0].extent}.extent`)!;
      durable[durable.length - 3000] ^= 1;
      cached[cached.length - 3000] ^= 1;
    }
    await expect(read()).rejects.toMatchObject({ remoteCode: 'DAMAGED' });
  });
});
