/** What every store of a manager must do. */

import { describe, expect, it } from 'vitest';
import type { Metadata } from '../../src/extents/metadata.js';
import { EventQueue } from '../../src/sim/event-queue.js';
import { pass, until } from '../support/virtual-time.js';

export function metadataContract(title: string, open: (events: EventQueue) => Promise<Metadata>): void {
  /** A store in a time of its own, and the results of its calls. */
  async function opened() {
    const events = new EventQueue();
    const metadata = await until(events, open(events));
    const settled = <T>(work: Promise<T>) => until(events, work);
    const put = (key: string, value: string, version: number) =>
      settled(metadata.commit({ compare: [{ key, version }], put: [{ key, value }] }));
    const get = (key: string) => settled(metadata.get(key));
    return { events, metadata, settled, put, get };
  }

  describe(title, () => {
    it('changes only where all versions hold', async () => {
      const { metadata, settled, put, get } = await opened();
      expect(await put('a', '1', 0)).toBe(true);
      expect(await put('a', '2', 0)).toBe(false);
      const { version } = (await get('a'))!;
      const both = [
        { key: 'a', version },
        { key: 'b', version: 99 },
      ];
      expect(await settled(metadata.commit({ compare: both, remove: ['a'] }))).toBe(false);
      expect((await get('a'))!.value).toBe('1');
      expect(await put('a', '2', version)).toBe(true);
    });

    it('lets one of two changes of the same version win', async () => {
      const { metadata, settled, get } = await opened();
      const both = ['1', '2'].map((value) =>
        metadata.commit({ compare: [{ key: 'a', version: 0 }], put: [{ key: 'a', value }] }),
      );
      expect(await settled(Promise.all(both))).toEqual([true, false]);
      expect((await get('a'))!.value).toBe('1');
    });

    it('never uses a version of a key again', async () => {
      const { metadata, settled, put, get } = await opened();
      await put('a', '1', 0);
      const first = (await get('a'))!.version;
      await settled(metadata.commit({ compare: [], remove: ['a'] }));
      await put('a', '1', 0);
      expect((await get('a'))!.version).toBeGreaterThan(first);
    });

    it('lists the keys that begin so, in order', async () => {
      const { metadata, settled, put } = await opened();
      for (const key of ['x/2', 'y/1', 'x/1']) await put(key, key, 0);
      expect((await settled(metadata.list('x/'))).map(({ key }) => key)).toEqual(['x/1', 'x/2']);
    });

    it('lets a key with a time to live vanish unless it is renewed, and tells who watches', async () => {
      const { events, metadata, settled, get } = await opened();
      const seen: string[] = [];
      const stop = metadata.watch('lease/', (key) => seen.push(key));
      await settled(metadata.commit({ compare: [], put: [{ key: 'lease/x', value: 'me', ttlMs: 10 }] }));
      const { version } = (await get('lease/x'))!;
      await pass(events, 8e6);
      expect(await settled(metadata.renew('lease/x', version, 10))).toBe(true);
      await pass(events, 8e6);
      expect((await get('lease/x'))?.value).toBe('me');
      await pass(events, 3e6);
      expect(await get('lease/x')).toBeUndefined();
      expect(await settled(metadata.renew('lease/x', version, 10))).toBe(false);
      stop();
      expect(seen).toEqual(['lease/x', 'lease/x']);
    });
  });
}
