import { expect, test } from 'vitest';
import { BufferCache } from '../../../src/storage-rpc/nbd/buffer-cache.js';

const MIB = 1 << 20;

/** `expect(a).not.toBe(b)` would compare a million elements one by one, for its message: seconds. */
const isSame = (a: object, b: object) => a === b;

test('a large buffer that was given back is taken again, by its length', () => {
  const cache = new BufferCache();
  const bytes = cache.take(MIB);
  cache.give(bytes);
  expect(isSame(cache.take(2 * MIB), bytes)).toBe(false);
  expect(isSame(cache.take(MIB), bytes)).toBe(true);
  expect(isSame(cache.take(MIB), bytes)).toBe(false);
});

test('small buffers and parts of others are not kept', () => {
  const cache = new BufferCache();
  const small = cache.take(4096);
  cache.give(small);
  expect(isSame(cache.take(4096), small)).toBe(false);
  const part = Buffer.alloc(2 * MIB).subarray(0, MIB);
  cache.give(part);
  expect(isSame(cache.take(MIB), part)).toBe(false);
});

test('it keeps no more than its bound', () => {
  const cache = new BufferCache();
  const given = new Set(Array.from({ length: 40 }, () => Buffer.alloc(MIB)));
  for (const bytes of given) cache.give(bytes);
  let kept = 0;
  while (given.has(cache.take(MIB) as Buffer<ArrayBuffer>)) kept++;
  expect(kept).toBeGreaterThan(0);
  expect(kept).toBeLessThanOrEqual(32);
});

test('what it does not keep is freed at once, and so is everything when it is cleared', () => {
  const cache = new BufferCache();
  const given = Array.from({ length: 40 }, () => Buffer.allocUnsafeSlow(MIB));
  for (const bytes of given) cache.give(bytes);
  expect(given.filter(({ length }) => length === 0)).toHaveLength(32);
  cache.clear();
  expect(given.filter(({ length }) => length === 0)).toHaveLength(40);
});
