import { describe, expect, it } from 'vitest';
import { randomInt, randomUnit, SeededRandom } from '../../../src/core/random.js';
import { repeated } from '../../../test/support/repetitions.js';
import { RemoteTable } from '../src/remote-table.js';
import type { KvStore, StoreChange, Written } from '../src/store.js';
import { key, memoryOf, setNow, smallStore, textOf, value } from './small-store.js';

/** Undefined when the store is full. */
function setIfRoom(store: KvStore, name: Buffer, bytes: Buffer): Written | undefined {
  try {
    return store.set(name, bytes);
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_ROCE_LIMIT' });
    return undefined;
  }
}

describe('a store', () => {
  it.each(repeated(1, [1, 2, 3, 4]))(
    'agrees with a Map over thousands of writes, also for readers: seed %i',
    async (seed) => {
      const { store, clock, geometry } = smallStore({ entries: 600 }, { seed });
      const reader = new RemoteTable(memoryOf(store.region), geometry, clock);
      const random = new SeededRandom(seed).stream('writes');
      const map = new Map<number, Buffer>();
      for (let turn = 0; turn < 6000; turn++) {
        // Some keys change often, others hardly ever: the records of these have to be moved.
        const name = Math.floor(180 * randomUnit(random) ** 3);
        if (randomInt(random, 0, 30) === 0) {
          store.delete(key(name));
          map.delete(name);
        } else {
          const bytes = value(randomInt(random, 0, 200), turn % 256);
          setNow(store, clock, key(name), bytes);
          map.set(name, bytes);
        }
        if (turn % 1000 !== 999) continue;
        for (let k = 0; k < 180; k++) {
          expect(store.get(key(k))?.value).toEqual(map.get(k));
          const seen = await reader.lookUp(key(k));
          expect(seen === 'unclear' ? seen : seen?.value).toEqual(map.get(k));
        }
        expect(store.size).toBe(map.size);
      }
      expect(store.counters.moved_records).toBeGreaterThan(100);
      expect(store.counters.waits).toBeGreaterThan(0);
      expect(store.counters.evictions).toBe(0);
    },
  );

  it('waits for memory a few times at most, however tight the log and however long its records', () => {
    // A compaction that makes no room would take each segment that becomes free, and the write would wait for ever.
    let waitsMax = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const tight = { bytes: 16 << 10, valueBytesMax: 100, inlineBytes: 0, graceMs: 1 };
      const { store, clock } = smallStore(tight, { seed });
      const random = new SeededRandom(seed).stream('writes');
      for (let turn = 0; turn < 300; turn++) {
        const name = key(Math.floor(90 * randomUnit(random) ** 3));
        const bytes = value(randomInt(random, 0, 1) === 0 ? 100 : randomInt(random, 0, 100), turn % 256);
        for (let waits = 0; ; waits++) {
          const written = setIfRoom(store, name, bytes);
          waitsMax = Math.max(waitsMax, waits);
          if (written?.outcome !== 'wait') break;
          expect(waits, `seed ${seed}, write ${turn}`).toBeLessThan(10);
          clock.timeNs = Math.max(clock.timeNs, written.retryNs);
        }
        clock.timeNs += randomInt(random, 0, 20_000);
      }
    }
    expect(waitsMax).toBeGreaterThan(0);
  });

  it('gives each value a version, and writes on a condition', () => {
    const { store } = smallStore();
    const first = store.set(key(1), value(5, 'a'), { ifVersion: 0 });
    expect(first.outcome).toBe('done');
    const { version } = first as { version: number };
    expect(store.set(key(1), value(5, 'b'), { ifVersion: 0 })).toEqual({ outcome: 'conflict', version });
    expect(store.set(key(1), value(5, 'b'), { ifVersion: version })).toEqual({ outcome: 'done', version: version + 1 });
    expect(store.delete(key(1), version)).toEqual({ outcome: 'conflict', version: version + 1 });
    expect(store.delete(key(1), version + 1).outcome).toBe('done');
    expect(store.delete(key(1))).toEqual({ outcome: 'done', version: 0 });
    expect(store.counters.conflicts).toBe(2);
  });

  it('begins a new life with versions of its own', () => {
    const firsts = [1, 2, 3, 4].map((seed) => {
      const written = smallStore({}, { seed }).store.set(key(1), value(1, 1));
      return written.outcome === 'done' ? written.version : 0;
    });
    expect(new Set(firsts).size).toBe(4);
    for (const version of firsts) expect(Number.isSafeInteger(version + 2 ** 52)).toBe(true);
  });

  it('refuses keys and values that are too long, and nothing is lost', () => {
    const { store } = smallStore();
    store.set(key(1), value(5, 'a'));
    expect(() => store.set(key(1), value(201, 'b'))).toThrow('longer than the 200');
    expect(() => store.set(Buffer.alloc(0), value(1, 'b'))).toThrow('1 to 16');
    expect(() => store.set(Buffer.alloc(17), value(1, 'b'))).toThrow('1 to 16');
    expect(textOf(store.get(key(1)))).toBe('aaaaa');
  });

  it('that may not evict refuses what has no room, keeps the rest, and takes more once something was deleted', () => {
    const { store, clock } = smallStore({ entries: 2000 });
    let count = 0;
    expect(() => {
      for (; ; count++) setNow(store, clock, key(count), value(200, count % 256));
    }).toThrow('the store is full');
    expect(count).toBeGreaterThan(150); // 64 KiB x 0.7 in records of 256 bytes.
    for (let k = 0; k < count; k++) expect(store.get(key(k))?.value).toEqual(value(200, k % 256));
    // What is there can still be replaced.
    for (let k = 0; k < count; k++) setNow(store, clock, key(k), value(200, 'n'));
    store.delete(key(0));
    setNow(store, clock, key('new'), value(200, 'x'));
    expect(store.size).toBe(count);
  });

  it.each([1, 2, 3])('has room for as many entries as it is made for: seed %i', (seed) => {
    const { store } = smallStore({ entries: 10_000 }, { seed });
    for (let k = 0; k < 10_000; k++) store.set(key(k), value(1, 'v'));
    expect(store.size).toBe(10_000);
  });

  it('whose buckets are full refuses an entry, and frees its record again', () => {
    const { store, clock } = smallStore({ entries: 8 });
    let refused = 0;
    for (let k = 0; k < 60; k++) {
      const { liveBytes } = store;
      try {
        setNow(store, clock, key(k), value(100, k));
      } catch (error) {
        expect(String(error)).toContain('buckets of the key are full');
        expect(store.liveBytes).toBe(liveBytes);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(20);
    expect(store.size).toBe(60 - refused);
  });

  it('that evicts takes everything, and spares what was used lately', () => {
    const { store, clock } = smallStore({ entries: 2000 }, { eviction: 'lru' });
    const changes: StoreChange[] = [];
    store.onChange = (change) => changes.push(change);
    for (let k = 0; k < 2000; k++) {
      setNow(store, clock, key(k), value(200, k % 256));
      for (let used = 0; used < 10; used++) store.touch(key(used));
    }
    expect(store.counters.evictions).toBeGreaterThan(1500);
    for (let used = 0; used < 10; used++) expect(store.get(key(used))).toBeDefined();
    expect(store.get(key(1999))).toBeDefined();
    expect(store.get(key(500))).toBeUndefined();
    expect(store.liveBytes).toBeLessThanOrEqual(0.7 * (64 << 10));
    expect(changes.filter(({ kind }) => kind === 'evict').length).toBe(store.counters.evictions);
  });

  it('ends entries in time, and removes them in the background', () => {
    const { store, clock } = smallStore();
    setNow(store, clock, key(1), value(5, 'a'), 100);
    setNow(store, clock, key(2), value(150, 'b'), 100);
    setNow(store, clock, key(3), value(150, 'c'));
    clock.timeNs += 99e6;
    expect(store.get(key(1))).toBeDefined();
    clock.timeNs += 1e6;
    expect(store.get(key(1))).toBeUndefined();
    expect(store.set(key(1), value(5, 'n'), { ifVersion: 0 }).outcome).toBe('done');
    expect(store.size).toBe(3);
    store.sweep(1000);
    expect(store.size).toBe(2);
    expect(store.counters.expirations).toBe(2);
    expect(store.get(key(3))).toBeDefined();
  });

  it('scans every entry once, whatever is written meanwhile', () => {
    const { store, clock } = smallStore();
    for (let k = 0; k < 40; k++) setNow(store, clock, key(k), value(k, k));
    const seen: string[] = [];
    for (let cursor: number | undefined = 0; cursor !== undefined; ) {
      const { records, next } = store.scan(cursor, 5);
      seen.push(...records.map((record) => record.key.toString()));
      for (let k = 0; k < 40; k++) setNow(store, clock, key(k), value(199 - k, k));
      cursor = next;
    }
    expect(seen.sort()).toEqual(Array.from({ length: 40 }, (_, k) => `key ${k}`).sort());
  });
});
