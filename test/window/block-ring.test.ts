import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BlockRing } from '../../src/window/block-ring.js';

function ringOf(count: number): BlockRing {
  const ring = new BlockRing();
  ring.grow(1, count);
  return ring;
}

describe('block ring', () => {
  test('blocks are used in ring order and come back at the head', () => {
    const ring = ringOf(3);
    expect([ring.take(), ring.take(), ring.take()]).toEqual([1, 2, 3]);
    expect(ring.free).toBe(0);
    expect(ring.releaseCount(2)).toBe(true);
    expect([ring.take(), ring.take()]).toEqual([1, 2]);
  });

  test('taking from an exhausted window is a broken invariant', () => {
    expect(() => ringOf(0).take()).toThrow(/exhausted/);
  });

  test('a block acknowledged by id is free although an older one is not', () => {
    const ring = ringOf(2);
    ring.take();
    ring.take();
    expect(ring.releaseId(2)).toBe(true);
    expect(ring.take()).toBe(2);
    expect(ring.releaseCount(1)).toBe(true);
    expect(ring.take()).toBe(1); // The count meant the oldest: block 1.
  });

  test('acknowledgements for blocks that are not in use change nothing', () => {
    const ring = ringOf(2);
    ring.take();
    expect(ring.releaseCount(2)).toBe(false);
    expect(ring.releaseCount(0)).toBe(false);
    expect(ring.releaseId(2)).toBe(false);
    expect(ring.releaseId(7)).toBe(false);
    expect([ring.free, ring.inUse]).toEqual([1, 1]);
  });

  test('new blocks are inserted at the tail: used next, and the order of the used ones stays', () => {
    const ring = ringOf(3);
    ring.take();
    ring.take();
    ring.grow(4, 2);
    expect([ring.take(), ring.take(), ring.take()]).toEqual([4, 5, 3]);
    ring.releaseCount(2);
    expect([ring.take(), ring.take()]).toEqual([1, 2]);
  });

  test('whatever happens, every id is in the ring once', () => {
    const step = fc.record({
      kind: fc.constantFrom('take', 'count', 'id', 'grow'),
      n: fc.integer({ min: 0, max: 12 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const ring = ringOf(4);
        let size = 4;
        for (const { kind, n } of steps) {
          if (kind === 'take' && ring.free > 0) ring.take();
          else if (kind === 'count') ring.releaseCount(n);
          else if (kind === 'id') ring.releaseId(n);
          else if (kind === 'grow' && n > 0 && n < 4) {
            ring.grow(size + 1, n);
            size += n;
          }
        }
        ring.releaseCount(ring.inUse);
        const all = Array.from({ length: size }, () => ring.take());
        expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, i) => i + 1));
      }),
    );
  });
});
