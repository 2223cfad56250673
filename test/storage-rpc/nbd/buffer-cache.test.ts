import { expect, test } from 'vitest';
import { BufferCache } from '../../../src/storage-rpc/nbd/buffer-cache.js';

const MIB = 1 << 20;

test('a large buffer that was given back is taken again, by its length', () => {
  const cache = new BufferCache();
  const bytes = cache.take(MIB);
  cache.give(bytes);
  expect(cache.take(2 * MIB)).not.toBe(bytes);
  expect(cache.take(MIB)).toBe(bytes);
  expect(cache.take(MIB)).not.toBe(bytes);
});

test('small buffers and parts of others are not kept', () => {
  const cache = new BufferCache();
  const small = cache.take(4096);
  cache.give(small);
  expect(cache.take(4096)).not.toBe(small);
  const part = Buffer.alloc(2 * MIB).subarray(0, MIB);
  cache.give(part);
  expect(cache.take(MIB)).not.toBe(part);
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
