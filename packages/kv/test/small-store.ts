/** Stores without a device: memory of the test, a clock that it sets, seeded choices. */

import { SeededRandom } from '../../../src/core/random.js';
import { layoutOf } from '../src/geometry.js';
import { geometryFor, type StoreSizes } from '../src/geometry-for.js';
import type { KvRecord } from '../src/record.js';
import type { RemoteMemory } from '../src/remote-table.js';
import { type Eviction, KvStore } from '../src/store.js';

export const SMALL: StoreSizes = {
  bytes: 64 << 10,
  entries: 64,
  keyBytesMax: 16,
  valueBytesMax: 200,
  inlineBytes: 40,
  graceMs: 10,
};

export class TestClock {
  timeNs = 1e9;
  readonly nowNs = (): number => this.timeNs;
  wakeAt(): () => void {
    throw new Error('not in this test');
  }
}

export function smallStore(sizes: StoreSizes = {}, { seed = 1, eviction = 'none' as Eviction } = {}) {
  const clock = new TestClock();
  const random = new SeededRandom(seed);
  const geometry = geometryFor({ ...SMALL, ...sizes }, random.stream('hash').u32());
  const store = new KvStore({
    region: Buffer.alloc(layoutOf(geometry).end),
    geometry,
    eviction,
    nowNs: clock.nowNs,
    random: random.stream('store'),
  });
  return { store, geometry, clock };
}

/** Memory that is read at once. */
export function memoryOf(region: Buffer): RemoteMemory {
  return { read: async (offset, length, use) => use(region.subarray(offset, offset + length)) };
}

export const key = (name: string | number): Buffer => Buffer.from(`key ${name}`);
export const value = (bytes: number, fill: number | string): Buffer => Buffer.alloc(bytes, fill);
export const textOf = (record: KvRecord | undefined): string | undefined => record?.value.toString('latin1');

/** Sets, letting time pass where the store must wait. */
export function setNow(store: KvStore, clock: TestClock, name: Buffer, bytes: Buffer, ttlMs?: number): number {
  for (;;) {
    const written = store.set(name, bytes, { ttlMs });
    if (written.outcome !== 'wait') return written.version;
    clock.timeNs = Math.max(clock.timeNs, written.retryNs);
  }
}
