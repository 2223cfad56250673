import { expect, it } from 'vitest';
import { QueueMemory } from '../../src/verbs/queue-memory.js';

const MIB = 1 << 20;

it('memory is used again for the same length, and is zero then', () => {
  let allocated = 0;
  const rings = new QueueMemory((bytes) => {
    allocated++;
    return new SharedArrayBuffer(bytes);
  });
  const first = rings.take(4096);
  new Uint8Array(first).fill(7);
  rings.give(first);
  expect(rings.take(8192)).not.toBe(first);
  const again = rings.take(4096);
  expect(again).toBe(first);
  expect(new Uint8Array(again).every((byte) => byte === 0)).toBe(true);
  expect(rings.take(4096)).not.toBe(first);
  expect(allocated).toBe(3);
});

it('at most 64 MiB are kept', () => {
  let allocated = 0;
  const rings = new QueueMemory((bytes) => {
    allocated++;
    return new ArrayBuffer(bytes);
  });
  const all = Array.from({ length: 70 }, () => rings.take(MIB));
  for (const memory of all) rings.give(memory);
  for (let i = 0; i < 70; i++) rings.take(MIB);
  expect(allocated).toBe(70 + 6);
});
