/** Stores of several owners, on sockets; which keys these have, without them. */

import { describe, expect, it } from 'vitest';
import { devicesAt } from '../../../test/support/devices.js';
import { freePort } from '../../../test/support/free-port.js';
import { type KvEvent, type KvServer, openKvShards, type ShardOwner, serveKv } from '../src/index.js';
import { merged } from '../src/merged.js';
import { Rendezvous } from '../src/rendezvous.js';

const ADDRESS = '127.0.4.8';
const SIZES = { bytes: 4 << 20, entries: 1000, valueBytesMax: 4096 };
const device = devicesAt(ADDRESS);

describe('keys of several owners', () => {
  const keys = Array.from({ length: 20_000 }, (_, k) => Buffer.from(`user:${k}`));
  const names = (count: number) => Array.from({ length: count }, (_, k) => `10.0.0.${k}:18521`);
  const ownersOf = (all: readonly string[]) => {
    const rendezvous = new Rendezvous(all);
    return keys.map((key) => all[rendezvous.ownerOf(key)]);
  };

  it.each([2, 3, 8, 50])('are shared evenly by %i', (count) => {
    const shares = new Map<string, number>();
    for (const name of ownersOf(names(count))) shares.set(name, (shares.get(name) ?? 0) + 1);
    expect(shares.size).toBe(count);
    // Four standard deviations.
    const [mean, spread] = [keys.length / count, 4 * Math.sqrt((keys.length / count) * (1 - 1 / count))];
    for (const share of shares.values()) expect(Math.abs(share - mean)).toBeLessThan(spread);
  });

  it.each([1, 2, 4, 9])(
    'with one owner beside %i more: it takes its share of them, and no other key moves',
    (count) => {
      const [before, after] = [ownersOf(names(count)), ownersOf(names(count + 1))];
      const moved = keys.filter((_, k) => before[k] !== after[k]).length;
      const share = 1 / (count + 1);
      expect(Math.abs(moved / keys.length - share)).toBeLessThan(4 * Math.sqrt((share * (1 - share)) / keys.length));
      const isNew = (name: string) => name === names(count + 1)[count];
      expect(keys.filter((_, k) => before[k] !== after[k] && !isNew(after[k]))).toEqual([]);
    },
  );

  it('move by the count of owners, as a remainder would give them, nearly all', () => {
    const before = keys.map((_, k) => k % 4);
    expect(keys.filter((_, k) => before[k] !== k % 5).length / keys.length).toBeGreaterThan(0.7);
  });

  it('do not depend on the order of the names', () => {
    expect(ownersOf(names(7).reverse())).toEqual(ownersOf(names(7)));
  });
});

describe('several iterations as one', () => {
  async function* of<T>(...items: T[]): AsyncGenerator<T, void, undefined> {
    yield* items;
    await new Promise(() => {});
  }

  it('give what any of them gives, and end with the first that ends or fails', async () => {
    const seen = [];
    for await (const item of merged([of(1, 2), of(3), of(4, 5, 6)])) {
      seen.push(item);
      if (seen.length === 6) break;
    }
    expect(seen.sort()).toEqual([1, 2, 3, 4, 5, 6]);
    async function* failing(): AsyncGenerator<number, void, undefined> {
      yield 7;
      throw new Error('it failed');
    }
    const rest = merged([of<number>(), failing()]);
    expect((await rest.next()).value).toBe(7);
    await expect(rest.next()).rejects.toThrow('it failed');
    async function* ending(): AsyncGenerator<number, void, undefined> {}
    expect((await merged([of<number>(), ending()]).next()).done).toBe(true);
  });
});

/** Owners, and what a reader names them by. */
async function serve(count: number): Promise<{ servers: KvServer<string>[]; owners: ShardOwner[] }> {
  const servers = [];
  for (let k = 0; k < count; k++)
    servers.push(await serveKv<string>({ device: await device(), port: 0, codec: 'string', ...SIZES }));
  return { servers, owners: servers.map(({ port }, k) => ({ host: ADDRESS, port, name: `owner ${k}` })) };
}
const open = async (owners: readonly ShardOwner[], options = {}) =>
  openKvShards<string>({ device: await device(), owners, codec: 'string', ...options });

describe('a store of several owners', () => {
  it('has the methods of one, and each key at its owner', async () => {
    const { servers, owners } = await serve(3);
    const kv = await open(owners);
    const other = await open([...owners].reverse());
    const keys = Array.from({ length: 300 }, (_, k) => `key ${k}`);
    await Promise.all(keys.map((key) => kv.set(key, `value of ${key}`)));
    expect(servers.reduce((sum, { size }) => sum + size, 0)).toBe(300);
    for (const { size } of servers) expect(size).toBeGreaterThan(50);
    expect(await other.getMany([...keys, 'none'])).toEqual([...keys.map((key) => `value of ${key}`), undefined]);
    expect(await servers[owners.findIndex(({ name }) => name === kv.ownerOf('key 7'))].get('key 7')).toBe(
      'value of key 7',
    );
    const entry = (await kv.getEntry('key 1'))!;
    expect(await kv.compareAndSet('key 1', entry.version, 'new')).toBeGreaterThan(entry.version);
    expect(await other.compareAndSet('key 1', entry.version, 'newer')).toBeUndefined();
    expect(await other.get('key 1')).toBe('new');
    expect([await kv.delete('key 2'), await kv.delete('key 2'), await kv.has('key 2')]).toEqual([true, false, false]);
    const seen = [];
    for await (const [key] of kv.entries({ prefix: 'key ' })) seen.push(key.toString());
    expect(seen.sort()).toEqual(keys.filter((key) => key !== 'key 2').sort());
    expect(other.counters().gets).toBe(302);
    await kv.close();
  });

  it('tells changes of all owners in one loop', async () => {
    const { owners } = await serve(2);
    const kv = await open(owners);
    const events: KvEvent[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const event of kv.watch('', { signal: stop.signal })) events.push(event);
    })();
    for (let k = 0; events.length < 20 || new Set(events.map(({ key }) => kv.ownerOf(key))).size < 2; k++) {
      await kv.set(`key ${k}`, 'v');
      await new Promise(setImmediate);
    }
    stop.abort();
    await expect(watching).rejects.toMatchObject({ code: 'ERR_ROCE_ABORTED' });
  });

  it('fails the keys of an owner that is down, and no others, until it is there again', async () => {
    const { servers, owners } = await serve(2);
    const kv = await open(owners);
    const at = (owner: number) =>
      Array.from({ length: 50 }, (_, k) => `key ${k}`).filter((key) => kv.ownerOf(key) === owners[owner].name);
    const [here, there] = [at(0), at(1)];
    for (const key of [...here, ...there]) await kv.set(key, 'v');
    const { port } = servers[1];
    await servers[1].close();
    for (const key of there) await expect(kv.get(key)).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    expect(new Set(await kv.getMany(here))).toEqual(new Set(['v']));
    await kv.set(here[0], 'w');
    await expect(kv.getMany([here[0], there[0]])).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    const again = await serveKv<string>({ device: await device(), port, codec: 'string', ...SIZES });
    expect(await kv.get(there[0])).toBeUndefined();
    await kv.set(there[0], 'x');
    expect(await again.get(there[0])).toBe('x');
  });

  it('opens while some owners are down, and not while all are, or one is something else', async () => {
    const { owners } = await serve(1);
    const down = { host: ADDRESS, port: await freePort(), name: 'down' };
    const kv = await open([...owners, down]);
    const mine = Array.from({ length: 50 }, (_, k) => `key ${k}`).find((key) => kv.ownerOf(key) !== 'down')!;
    expect(await kv.set(mine, 'v')).toBeGreaterThan(0);
    await expect(open([down])).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });

  it('refuses owners that cannot be', async () => {
    const one = { host: ADDRESS, port: 1 };
    await expect(open([])).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    await expect(open([one, one])).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    await expect(open([{ ...one, hots: 1 } as ShardOwner])).rejects.toMatchObject({ code: 'ERR_ROCE_UNKNOWN_NAME' });
    await expect(open(ADDRESS as unknown as ShardOwner[])).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
  });
});
