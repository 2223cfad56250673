/** What every store of a manager must do. */

import { afterEach, describe, expect, it } from 'vitest';
import type { Metadata } from '../../packages/extents/src/metadata.js';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { pass, until } from '../support/virtual-time.js';

/** A store, and its time. */
export interface StoreInTime {
  readonly metadata: Metadata;
  /** Lets time pass until the work has settled. */
  settled<T>(work: Promise<T>): Promise<T>;
  /** Lets so much time pass. */
  pass(ms: number): Promise<void>;
}

/** A store in a virtual time of its own. */
export async function inVirtualTime(open: (events: EventQueue) => Promise<Metadata>): Promise<StoreInTime> {
  const events = new EventQueue();
  const settled = <T>(work: Promise<T>) => until(events, work);
  return { metadata: await settled(open(events)), settled, pass: (ms) => pass(events, ms * 1e6) };
}

/** `ttlMs`: the shortest time to live. */
export function metadataContract(title: string, open: () => Promise<StoreInTime>, ttlMs = 10): void {
  let last: Metadata | undefined;

  async function opened() {
    const { metadata, settled, pass } = await open();
    last = metadata;
    const put = (key: string, value: string, version: number) =>
      settled(metadata.commit({ compare: [{ key, version }], put: [{ key, value }] }));
    const get = (key: string) => settled(metadata.get(key));
    return { metadata, settled, pass, put, get };
  }

  describe(title, () => {
    afterEach(async () => {
      void last?.close();
    });

    it('changes only where all versions hold', async () => {
      const { metadata, settled, put, get } = await opened();
      expect(await put('a', '1', 0)).toBeGreaterThan(0);
      expect(await put('a', '2', 0)).toBe(0);
      const { version } = (await get('a'))!;
      const both = [
        { key: 'a', version },
        { key: 'b', version: 99 },
      ];
      expect(await settled(metadata.commit({ compare: both, remove: ['a'] }))).toBe(0);
      expect((await get('a'))!.value).toBe('1');
      const next = await put('a', '2', version);
      expect(next).toBe((await get('a'))!.version);
    });

    it('lets one of two changes of the same version win', async () => {
      const { metadata, settled, get } = await opened();
      const both = ['1', '2'].map((value) =>
        metadata.commit({ compare: [{ key: 'a', version: 0 }], put: [{ key: 'a', value }] }),
      );
      const versions = await settled(Promise.all(both));
      const winner = versions.findIndex((version) => version > 0);
      expect(versions[1 - winner]).toBe(0);
      expect((await get('a'))!.value).toBe(`${winner + 1}`);
    });

    it('never uses a version of a key again', async () => {
      const { metadata, settled, put, get } = await opened();
      await put('a', '1', 0);
      const first = (await get('a'))!.version;
      await settled(metadata.commit({ compare: [], remove: ['a'] }));
      await put('a', '1', 0);
      expect((await get('a'))!.version).toBeGreaterThan(first);
    });

    it('writes a key that the same transaction removes', async () => {
      const { metadata, settled, put, get } = await opened();
      await put('a', '1', 0);
      const both = { compare: [], put: [{ key: 'a', value: '2' }], remove: ['a'] };
      expect(await settled(metadata.commit(both))).toBeGreaterThan(0);
      expect((await get('a'))!.value).toBe('2');
    });

    it('lists the keys that begin so, in order', async () => {
      const { metadata, settled, put } = await opened();
      for (const key of ['x/2', 'y/1', 'x/1']) await put(key, key, 0);
      expect((await settled(metadata.list('x/'))).map(({ key }) => key)).toEqual(['x/1', 'x/2']);
    });

    it('lets a key with a time to live vanish unless it is renewed, and tells who watches', async () => {
      const { metadata, settled, pass, get } = await opened();
      const seen: string[] = [];
      const stop = metadata.watch('lease/', (key) => seen.push(key));
      await pass(ttlMs / 10); // Until the watch is there.
      await settled(metadata.commit({ compare: [], put: [{ key: 'lease/x', value: 'me', ttlMs }] }));
      const { version } = (await get('lease/x'))!;
      await pass(0.8 * ttlMs);
      expect(await settled(metadata.renew('lease/x', version, ttlMs))).toBe(true);
      await pass(0.8 * ttlMs);
      expect((await get('lease/x'))?.value).toBe('me');
      for (let waited = 0; waited < 4 && (await get('lease/x')) !== undefined; waited++) await pass(0.3 * ttlMs);
      expect(await get('lease/x')).toBeUndefined();
      expect(await settled(metadata.renew('lease/x', version, ttlMs))).toBe(false);
      stop();
      expect(seen).toEqual(['lease/x', 'lease/x']);
    });
  });
}
