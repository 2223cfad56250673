/** Memory that is used again: by size, bounded, and never by two at a time. */

import { describe, expect, it } from 'vitest';
import { ScratchMemory } from '../../src/verbs/scratch-memory.js';

const MIB = 1 << 20;

function pool() {
  const made: number[] = [];
  const allocate = (bytes: number) => {
    made.push(bytes);
    return Buffer.from(new SharedArrayBuffer(bytes));
  };
  return { made, pool: new ScratchMemory(allocate) };
}

describe('a memory pool', () => {
  it('gives what came back, to whoever needs that much', () => {
    const { made, pool: memory } = pool();
    const first = memory.take(4 * MIB);
    memory.give(first);
    const second = memory.take(3 * MIB);
    expect(second.buffer).toBe(first.buffer);
    expect(second).toHaveLength(3 * MIB);
    memory.give(second);
    expect(memory.take(4 * MIB)).toHaveLength(4 * MIB);
    expect(made).toEqual([4 * MIB]);
  });

  it('never gives to two at a time', () => {
    const { pool: memory } = pool();
    const [a, b] = [memory.take(100), memory.take(100)];
    expect(a.buffer).not.toBe(b.buffer);
    memory.give(a);
    memory.give(b);
    expect(memory.take(100).buffer).not.toBe(memory.take(100).buffer);
  });

  it.each([0, 1, 64, 65, 4097])('gives %i bytes', (bytes) => {
    expect(pool().pool.take(bytes)).toHaveLength(bytes);
  });

  it('keeps 64 MiB at most', () => {
    const { pool: memory } = pool();
    for (const taken of Array.from({ length: 40 }, () => memory.take(4 * MIB))) memory.give(taken);
    expect(memory.keptBytes).toBe(64 * MIB);
    memory.take(4 * MIB);
    expect(memory.keptBytes).toBe(60 * MIB);
  });
});
