/** Decisions of the manager that need no cluster: the length of a seal, and transactions of its metadata. */

import { describe, expect, it } from 'vitest';
import { MemoryMetadata } from '../../src/extents/memory-metadata.js';
import { sealedLength } from '../../src/extents/stream-manager.js';
import { EventQueue } from '../../src/sim/event-queue.js';
import { virtualClock } from '../../src/sim/virtual-clock.js';
import { pass } from '../support/virtual-time.js';

const replica = (node: number, length: number, isRecovered = false) => ({ node, length, isRecovered });

describe('the length of a seal', () => {
  it('is the smallest of those that answer', () => {
    expect(sealedLength([replica(1, 30), replica(2, 20), replica(3, 30)], 20)).toBe(20);
  });

  it('does not count a replica that is shorter than what all of them had', () => {
    expect(sealedLength([replica(1, 30), replica(2, 10), replica(3, 20)], 20)).toBe(20);
  });

  it('believes memory before a disk that was started anew, and the disk if there is nothing else', () => {
    expect(sealedLength([replica(1, 30), replica(2, 10, true)], 0)).toBe(30);
    expect(sealedLength([replica(1, 30, true), replica(2, 10, true)], 0)).toBe(10);
  });

  it('is unknown where nobody answers', () => {
    expect(sealedLength([], 0)).toBeUndefined();
    expect(sealedLength([replica(1, 10)], 20)).toBeUndefined();
  });
});

describe('metadata in memory', () => {
  const events = new EventQueue();
  const metadata = new MemoryMetadata(virtualClock(events));
  const put = (key: string, value: string, version: number) =>
    metadata.commit({ compare: [{ key, version }], put: [{ key, value }] });

  it('changes only where all versions hold', async () => {
    expect(await put('a', '1', 0)).toBe(true);
    expect(await put('a', '2', 0)).toBe(false);
    const { version } = (await metadata.get('a'))!;
    const both = [
      { key: 'a', version },
      { key: 'b', version: 99 },
    ];
    expect(await metadata.commit({ compare: both, remove: ['a'] })).toBe(false);
    expect((await metadata.get('a'))!.value).toBe('1');
    expect(await put('a', '2', version)).toBe(true);
  });

  it('lets a key with a time to live vanish unless it is renewed, and tells who watches', async () => {
    const seen: string[] = [];
    const stop = metadata.watch('lease/', (key) => seen.push(key));
    await metadata.commit({ compare: [], put: [{ key: 'lease/x', value: 'me', ttlMs: 10 }] });
    const { version } = (await metadata.get('lease/x'))!;
    await pass(events, 8e6);
    expect(await metadata.renew('lease/x', version, 10)).toBe(true);
    await pass(events, 8e6);
    expect((await metadata.get('lease/x'))?.value).toBe('me');
    await pass(events, 3e6);
    expect(await metadata.get('lease/x')).toBeUndefined();
    expect(await metadata.renew('lease/x', version, 10)).toBe(false);
    stop();
    expect(seen).toEqual(['lease/x', 'lease/x']);
  });
});
