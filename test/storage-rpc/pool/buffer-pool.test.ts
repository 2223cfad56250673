import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventQueue } from '../../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import {
  type BufferLease,
  BufferPool,
  type BufferPoolOptions,
  type Slab,
} from '../../../src/storage-rpc/pool/buffer-pool.js';
import { pass, settle } from '../../support/virtual-time.js';

const KIB = 1024;
const SLAB_BYTES = 2048 * KIB;

class TestSlab implements Slab {
  readonly bytes: Uint8Array;
  closed = false;

  constructor(bytes: number) {
    this.bytes = new Uint8Array(bytes);
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

interface World {
  readonly events: EventQueue;
  readonly pool: BufferPool<TestSlab>;
  readonly slabs: TestSlab[];
}

function world(options: Partial<BufferPoolOptions<TestSlab>> = {}): World {
  const events = new EventQueue();
  const slabs: TestSlab[] = [];
  const allocate = async (bytes: number) => {
    const slab = new TestSlab(bytes);
    slabs.push(slab);
    return slab;
  };
  return { events, slabs, pool: new BufferPool({ allocate, clock: virtualClock(events), ...options }) };
}

test('grows when asked for more than there is, and shrinks what nobody used for a minute', async () => {
  const { events, pool, slabs } = world();
  const leases = await Promise.all(Array.from({ length: 5 }, () => pool.acquire(1024 * KIB)));
  expect(pool.registeredBytes).toBe(3 * SLAB_BYTES);
  for (const lease of leases.slice(1)) lease.release();
  await pass(events, 59e9);
  expect(pool.registeredBytes).toBe(3 * SLAB_BYTES);
  await pass(events, 2e9);
  expect(pool.registeredBytes).toBe(SLAB_BYTES);
  expect(slabs.filter(({ closed }) => closed)).toHaveLength(2);
  leases[0].release();
  await pass(events, 61e9);
  expect([pool.registeredBytes, pool.inUse]).toEqual([0, 0]);
  expect(pool.counters).toMatchObject({ grown: 3, shrunk: 3 });
});

test('at its cap requests wait, first come first served, and a large one is not starved by small ones', async () => {
  const { pool } = world({ bytesMax: SLAB_BYTES });
  const small = await Promise.all(Array.from({ length: 512 }, () => pool.acquire(4 * KIB)));
  const order: string[] = [];
  const large = pool.acquire(1024 * KIB).then((lease) => {
    order.push('large');
    return lease;
  });
  const late = pool.acquire(4 * KIB).then((lease) => {
    order.push('late');
    return lease;
  });
  for (const lease of small.slice(1)) lease.release();
  await settle();
  expect(order).toEqual([]);
  small[0].release();
  await large;
  (await large).release();
  await late;
  expect(order).toEqual(['large', 'late']);
});

test('no more than so many may wait', async () => {
  const { pool } = world({ bytesMax: SLAB_BYTES, waitersMax: 2 });
  const held = await Promise.all([pool.acquire(1024 * KIB), pool.acquire(1024 * KIB)]);
  const waiting = [pool.acquire(1), pool.acquire(1)];
  await expect(pool.acquire(1)).rejects.toMatchObject({ code: 'ERR_ROCE_LIMIT' });
  expect(pool.counters.refused).toBe(1);
  for (const lease of held) lease.release();
  await Promise.all(waiting);
});

test('memory that cannot be had is an error only if nothing can come back', async () => {
  let fails = false;
  const { pool } = world({
    allocate: async (bytes) => {
      if (fails) throw new Error('no memory');
      return new TestSlab(bytes);
    },
  });
  const first = await pool.acquire(1024 * KIB);
  const second = await pool.acquire(1024 * KIB);
  fails = true;
  const third = pool.acquire(1024 * KIB);
  await settle();
  first.release();
  (await third).release();
  second.release();
  const odd = world({ allocate: () => Promise.reject(new Error('no memory')) });
  await expect(odd.pool.acquire(1)).rejects.toThrow('no memory');
  expect(pool.inUse).toBe(0);
});

test('closing gives back every slab, one that is being made, too, and refuses who waits and who comes', async () => {
  let finish: (slab: TestSlab) => void = () => {};
  const { pool } = world({
    allocate: () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  });
  const waiting = pool.acquire(1);
  const refused = expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  const closing = pool.close();
  const slab = new TestSlab(SLAB_BYTES);
  finish(slab);
  await closing;
  await refused;
  expect(slab.closed).toBe(true);
  await expect(pool.acquire(1)).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  expect(() => pool.acquire(0)).toThrow('a buffer cannot have 0 bytes');
});

test('pieces on loan never overlap, and all come back, in any order of asking and returning', async () => {
  const step = fc.oneof(
    fc.record({ ask: fc.integer({ min: 1, max: 1024 * KIB }) }),
    fc.record({ giveBack: fc.nat(100) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { pool } = world({ bytesMax: 3 * SLAB_BYTES });
      const held: BufferLease<TestSlab>[] = [];
      for (const what of steps) {
        if ('ask' in what) void pool.acquire(what.ask).then((lease) => held.push(lease));
        else held.splice(what.giveBack % Math.max(1, held.length), 1)[0]?.release();
        await settle();
        for (const [i, a] of held.entries()) {
          for (const b of held.slice(i + 1)) {
            const apart = a.slab !== b.slab || a.offset + a.length <= b.offset || b.offset + b.length <= a.offset;
            expect(apart).toBe(true);
          }
        }
        expect(pool.registeredBytes).toBeLessThanOrEqual(3 * SLAB_BYTES);
      }
      while (held.length > 0 || pool.waiting > 0) {
        for (const lease of held.splice(0)) lease.release();
        await settle();
      }
      expect(pool.inUse).toBe(0);
    }),
    { numRuns: 50 },
  );
});
