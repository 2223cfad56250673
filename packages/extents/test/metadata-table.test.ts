/** Keys with a time to live vanish once, at their time, however early or late timers fire. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { unpunctualClock } from '../../../test/support/unpunctual-clock.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { MetadataTable } from '../src/metadata-table.js';

const TTL_MS = 30;
const KEYS = 8;

describe('a time to live', () => {
  it.each([1, 2, 3, 4, 5, 6])('ends once, and not early, with the timers of seed %i', (seed) => {
    const events = new EventQueue();
    const random = new SeededRandom(seed).stream('clock');
    const clock = unpunctualClock(virtualClock(events), random);
    const ends = new Map<string, number>();
    const table = new MetadataTable(clock, (key, version) => {
      expect(ends.has(key)).toBe(false);
      expect(table.isDue(key, version)).toBe(true);
      ends.set(key, events.nowNs);
    });
    const put = Array.from({ length: KEYS }, (_, k) => ({ key: `owner/${k}`, value: 'dead', ttlMs: TTL_MS }));
    table.apply({ version: 1, put, remove: [] });
    events.at(20e6, () => table.renew('owner/0', 1, TTL_MS));
    while (events.step());
    expect(ends.size).toBe(KEYS);
    for (const [key, atNs] of ends) {
      const dueNs = (key === 'owner/0' ? 50 : 30) * 1e6;
      expect(atNs).toBeGreaterThanOrEqual(dueNs);
      expect(atNs).toBeLessThan(dueNs + 10e6);
    }
  });

  it('does not end a key that was removed or replaced', () => {
    const events = new EventQueue();
    const ended: string[] = [];
    const table = new MetadataTable(virtualClock(events), (key, version) => ended.push(`${key} ${version}`));
    table.apply({ version: 1, put: [{ key: 'a', value: '1', ttlMs: TTL_MS }, { key: 'b', value: '1', ttlMs: TTL_MS }], remove: [] }); // biome-ignore format: one change
    table.apply({ version: 2, put: [{ key: 'a', value: '2' }], remove: ['b'] });
    while (events.step());
    expect(ended).toEqual([]);
  });
});
