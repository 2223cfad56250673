/** Stores on sockets, as programs use them. */

import { describe, expect, it } from 'vitest';
import { connect, listen } from '../../../src/index.js';
import { devicesAt } from '../../../test/support/devices.js';
import { type KvClient, type KvServer, openKv, type ServeKvOptions, serveKv } from '../src/index.js';

const ADDRESS = '127.0.4.1';
const SIZES = { bytes: 4 << 20, entries: 1000, valueBytesMax: 4096 };

const device = devicesAt(ADDRESS);

async function pair<V = Uint8Array>(
  options: Partial<ServeKvOptions<V>> = {},
): Promise<{ owner: KvServer<V>; reader: KvClient<V>; more: () => Promise<KvClient<V>> }> {
  const owner = await serveKv<V>({ device: await device(), port: 0, ...SIZES, ...options });
  const here = await device();
  const { codec } = options;
  const more = () => openKv<V>({ device: here, host: ADDRESS, port: owner.port, ...(codec && { codec }) });
  return { owner, reader: await more(), more };
}

describe('a store', () => {
  it('gives readers what the owner and other readers have written', async () => {
    const { owner, reader, more } = await pair();
    const other = await more();
    const long = Buffer.alloc(4096, 'x');
    expect(await reader.get('a')).toBeUndefined();
    await owner.set('a', Buffer.from('one'));
    await other.set('b', long);
    expect(await reader.getMany(['a', 'b', 'c'])).toEqual([Buffer.from('one'), long, undefined]);
    expect(await owner.get('b')).toEqual(long);
    expect(await reader.has('b')).toBe(true);
    expect(await reader.delete('b')).toBe(true);
    expect(await reader.delete('b')).toBe(false);
    expect(await other.has('b')).toBe(false);
    expect(reader.counters()).toMatchObject({ gets: 5, bucket_reads: 5, record_reads: 2, torn: 0, asked: 0 });
    expect(owner.size).toBe(1);
  });
});

describe('a reader', () => {
  it('writes on the condition of a version', async () => {
    const { owner, reader } = await pair<string>({ codec: 'string' });
    const first = await reader.compareAndSet('k', 0, 'one');
    expect(first).toBe((await owner.getEntry('k'))!.version);
    expect(await reader.compareAndSet('k', 0, 'two')).toBeUndefined();
    expect(await owner.compareAndSet('k', first!, 'two')).toBe(first! + 1);
    expect(await reader.compareAndSet('k', first!, 'three')).toBeUndefined();
    expect(await reader.getEntry('k')).toEqual({ value: 'two', version: first! + 1 });
  });

  it('sends writes of one turn together, in order', async () => {
    const { reader, owner } = await pair<string>({ codec: 'string' });
    const versions = await Promise.all(Array.from({ length: 500 }, (_, k) => reader.set(`k${k % 7}`, `v${k}`)));
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    for (let k = 493; k < 500; k++) expect(await owner.get(`k${k % 7}`)).toBe(`v${k}`);
  });

  it('iterates over entries by prefix', async () => {
    const { owner, reader } = await pair<number>({ codec: 'json' });
    for (let k = 0; k < 600; k++) await owner.set(`${k % 2 === 0 ? 'even' : 'odd'}:${k}`, k);
    for (const kv of [owner, reader]) {
      const seen: number[] = [];
      for await (const [key, { value }] of kv.entries({ prefix: 'odd:' })) {
        expect(key.toString()).toBe(`odd:${value}`);
        seen.push(value);
      }
      expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, k) => 2 * k + 1));
    }
  });

  it('hears of changes by prefix until it leaves the loop', async () => {
    const { owner, reader } = await pair<string>({ codec: 'string' });
    const events = reader.watch('user:');
    const first = events.next();
    await reader.set('user:0', 'x'); // Behind the call of `watch`, on the same connection.
    const version = await owner.set('user:1', 'a');
    await owner.set('other', 'b');
    await owner.delete('user:1');
    expect((await first).value).toMatchObject({ kind: 'set', key: Buffer.from('user:0') });
    expect((await events.next()).value).toEqual({ kind: 'set', key: Buffer.from('user:1'), version });
    expect((await events.next()).value).toEqual({ kind: 'delete', key: Buffer.from('user:1'), version });
    await events.return?.();
  });

  it.each([
    ['string', 'text'],
    ['json', { a: [1, null] }],
    ['structured', { date: new Date(5), map: new Map([[1, new Set([2])]]) }],
  ] as const)('has values of the codec %s', async (codec, value) => {
    const { owner, reader } = await pair<unknown>({ codec });
    await owner.set('k', value);
    expect(await reader.get('k')).toEqual(value);
  });

  it('sees entries end in time', async () => {
    const { owner, reader } = await pair<string>({ codec: 'string' });
    await owner.set('k', 'v', { ttlMs: 1 });
    await owner.set('stays', 'v', { ttlMs: 60_000 });
    while (await reader.has('k')) await new Promise(setImmediate);
    expect(await owner.get('k')).toBeUndefined();
    expect(await reader.get('stays')).toBe('v');
  });
});

describe('bad input', () => {
  it('to a reader is refused with the limit, and harms nothing', async () => {
    const { reader } = await pair();
    await expect(reader.set('k', Buffer.alloc(4097))).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    await expect(reader.set('', Buffer.alloc(1))).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    await expect(reader.get('k'.repeat(129))).rejects.toThrow('1 to 128');
    await expect(reader.set('k', 'text' as unknown as Buffer)).rejects.toThrow("a codec: 'json'");
    await expect(reader.set('k', Buffer.alloc(1), { ttlMs: -1 })).rejects.toThrow('ttlMs is -1');
    await expect(reader.compareAndSet('k', -1, Buffer.alloc(1))).rejects.toThrow('version is -1');
    await expect(reader.get(5 as unknown as string)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
    expect(await reader.set('k', Buffer.alloc(1))).toBeGreaterThan(0);
  });

  it('to serveKv and openKv is refused by name', async () => {
    const here = await device();
    const bad = (options: object) => serveKv({ device: here, port: 0, ...SIZES, ...options });
    await expect(bad({ evictions: 'lru' })).rejects.toThrow("did you mean 'eviction'");
    await expect(bad({ eviction: 'lifo' })).rejects.toMatchObject({ code: 'ERR_ROCE_UNKNOWN_NAME' });
    await expect(bad({ codec: 'xml' })).rejects.toThrow("codec is 'xml'");
    await expect(bad({ bytes: 1 << 16 })).rejects.toThrow('too little');
    await expect(openKv({ device: here, host: ADDRESS, port: 1 })).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  });

  it('a full store tells its readers so, and keeps what it has', async () => {
    const { owner, reader } = await pair({ eviction: 'none', bytes: 1 << 20, entries: 2000, graceMs: 20 });
    const value = Buffer.alloc(4096);
    let count = 0;
    await expect(
      (async () => {
        for (; ; count++) await reader.set(`k${count}`, value);
      })(),
    ).rejects.toMatchObject({ code: 'ERR_ROCE_LIMIT' });
    expect(owner.size).toBe(count);
    expect(await reader.get('k0')).toEqual(value);
  });

  it('more readers than there may be are told so, until one has left', async () => {
    const { owner, reader, more } = await pair({ readersMax: 2 });
    const other = await more();
    await expect(more()).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT', message: /2 connections .* as many as/ });
    await owner.set('k', Buffer.from('v'));
    for (const one of [reader, other]) expect(await one.get('k')).toEqual(Buffer.from('v'));
    await other.close();
    while (owner.readers > 1) await new Promise(setImmediate);
    expect(await (await more()).get('k')).toEqual(Buffer.from('v'));
    await expect(pair({ readersMax: 0 })).rejects.toThrow('readersMax');
  });

  it('a reader whose key was revoked gets an error, and can come again', async () => {
    const { owner, reader, more } = await pair<string>({ codec: 'string' });
    await owner.set('k', 'v');
    expect(await reader.get('k')).toBe('v');
    await owner.revoke();
    const code = expect.stringMatching(/^ERR_ROCE_(COMPLETION|CLOSED)$/); // The connection may have ended before.
    await expect(reader.get('k')).rejects.toMatchObject({ code });
    expect(await (await more()).get('k')).toBe('v');
  });

  it('a reader cannot write the memory of the owner', async () => {
    const { owner } = await pair<string>({ codec: 'string' });
    await owner.set('k', 'v');
    const stranger = await connect(await device(), { host: ADDRESS, port: owner.port });
    expect(stranger.remote).toBeUndefined();
    await expect(stranger.write(Buffer.alloc(8), 0)).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
    await stranger.close();
    expect(await owner.get('k')).toBe('v');
  });

  it('a peer that owns no store is told apart', async () => {
    const here = await device();
    const listener = await listen(here, { port: 0 });
    const opened = openKv({ device: await device(), host: ADDRESS, port: listener.port });
    const refused = expect(opened).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
    const peer = await listener.accept();
    await peer.send(Buffer.from('hello')).catch(() => {}); // The other side may end before it has acknowledged.
    await refused;
  });
});

describe('the end', () => {
  it('of the owner ends its readers', async () => {
    const { owner, reader } = await pair();
    await owner.close();
    await expect(reader.get('k')).rejects.toBeInstanceOf(Error);
    await expect(owner.set('k', Buffer.alloc(1))).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  });

  it('of a reader leaves the others and the owner', async () => {
    const { owner, reader, more } = await pair<string>({ codec: 'string' });
    const other = await more();
    await reader.close();
    await owner.set('k', 'v');
    expect(await other.get('k')).toBe('v');
    await expect(reader.get('k')).rejects.toBeInstanceOf(Error);
  });
});
