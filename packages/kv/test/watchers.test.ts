import { describe, expect, it } from 'vitest';
import type { KvEvent } from '../src/kv.js';
import type { StoreChange } from '../src/store.js';
import { Watchers } from '../src/watchers.js';

const change = (key: string, version = 1): StoreChange => ({ kind: 'set', key: Buffer.from(key), version });

describe('a watcher', () => {
  it('hears of keys with its prefix, in order', async () => {
    const watchers = new Watchers();
    const events = watchers.watch(Buffer.from('a'));
    const first = events.next();
    watchers.tell(change('b'));
    watchers.tell(change('ab', 1));
    watchers.tell(change('a', 2));
    expect((await first).value).toEqual(change('ab', 1));
    expect((await events.next()).value).toEqual(change('a', 2));
    await events.return();
    expect(watchers.size).toBe(0);
  });

  it('that does not keep up is told so once, delays nobody, and hears of what comes later', async () => {
    const watchers = new Watchers();
    const events = watchers.watch(Buffer.alloc(0));
    const first = events.next();
    watchers.tell(change('first'));
    await first;
    for (let k = 0; k < 5000; k++) watchers.tell(change('k', k));
    const kinds: KvEvent['kind'][] = [];
    for (let k = 0; k < 1025; k++) kinds.push((await events.next()).value!.kind);
    expect(kinds.slice(0, 1024)).toEqual(new Array(1024).fill('set'));
    expect(kinds[1024]).toBe('lost');
    watchers.tell(change('later'));
    expect((await events.next()).value).toEqual(change('later'));
  });

  it('ends with its signal, and with the store', async () => {
    const watchers = new Watchers();
    const abort = new AbortController();
    const [one, two] = [watchers.watch(Buffer.alloc(0), abort.signal), watchers.watch(Buffer.alloc(0))];
    const [ofOne, ofTwo] = [one.next(), two.next()];
    abort.abort();
    expect((await ofOne).done).toBe(true);
    expect(watchers.size).toBe(1);
    watchers.close();
    expect((await ofTwo).done).toBe(true);
    expect(watchers.size).toBe(0);
  });
});
