/** Names and their words. */

import { describe, expect, it } from 'vitest';
import { Cells } from '../src/cells.js';
import { isHeld, tokenOf } from '../src/lease-word.js';

function cells(words = 8, init: { firstNumber?: bigint; areLocksHeld?: boolean } = {}) {
  const region = Buffer.alloc(words * 8);
  return { region, cells: new Cells({ region, firstNumber: 0n, areLocksHeld: false, ...init }) };
}

describe('a name', () => {
  it('has the same words for everybody who asks, and each kind has names of its own', () => {
    const { cells: all } = cells();
    const first = all.cell({ kind: 'counter', name: 'x' });
    expect(all.cell({ kind: 'counter', name: 'x' })).toEqual(first);
    expect(all.cell({ kind: 'lock', name: 'x' }).offset).not.toBe(first.offset);
    expect(all.size).toBe(2);
  });

  it('keeps the terms of whoever came first', () => {
    const { cells: all } = cells();
    expect(all.cell({ kind: 'lock', name: 'x', leaseMs: 50 })).toMatchObject({ leaseMs: 50 });
    expect(all.cell({ kind: 'lock', name: 'x' })).toMatchObject({ leaseMs: 50 });
    expect(() => all.cell({ kind: 'lock', name: 'x', leaseMs: 60 })).toThrow("lock 'x' has leaseMs 50, not 60");
    expect(all.cell({ kind: 'semaphore', name: 'x', size: 3 })).toMatchObject({ size: 3, leaseMs: 10_000 });
    expect(() => all.cell({ kind: 'semaphore', name: 'x', size: 4 })).toThrow('permits 3, not 4');
    expect(() => all.cell({ kind: 'barrier', name: 'new' })).toThrow('gives parties');
  });

  it('that does not fit is refused, and harms nobody', () => {
    const { cells: all, region } = cells(4);
    all.cell({ kind: 'semaphore', name: 'x', size: 3 });
    expect(() => all.cell({ kind: 'semaphore', name: 'y', size: 2 })).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_LIMIT' }),
    );
    expect(all.cell({ kind: 'counter', name: 'y' }).offset).toBe(24);
    expect(() => all.cell({ kind: 'counter', name: 'z' })).toThrow('no room');
    expect(all.size).toBe(2);
    expect(region.every((byte) => byte === 0)).toBe(true);
  });

  it.each([
    [{ kind: 'counter', name: '' }, '1 to 128'],
    [{ kind: 'counter', name: 'ä'.repeat(65) }, '1 to 128'],
    [{ kind: 'lock', name: 'x', leaseMs: 9 }, 'leaseMs is 9'],
    [{ kind: 'semaphore', name: 'x', size: 129 }, 'permits is 129'],
    [{ kind: 'barrier', name: 'x', size: 0 }, 'parties is 0'],
  ] as const)('%j is refused', (question, words) => {
    const { cells: all } = cells();
    expect(() => all.cell(question)).toThrow(words);
    expect(all.size).toBe(0);
  });
});

describe('the words of a new owner', () => {
  it('begin with greater tokens and numbers than those of an owner before', () => {
    const { cells: all, region } = cells(8, { firstNumber: 1000n });
    const { offset } = all.cell({ kind: 'lock', name: 'x' });
    expect(tokenOf(region.readBigUInt64LE(offset))).toBe(1000n);
    expect(isHeld(region.readBigUInt64LE(offset))).toBe(false);
    const sequencer = all.cell({ kind: 'sequencer', name: 'x' });
    expect(region.readBigUInt64LE(sequencer.offset)).toBe(1000n << 11n);
  });

  it('are as if held by the dead after a restart', () => {
    const { cells: all, region } = cells(8, { areLocksHeld: true });
    const { offset } = all.cell({ kind: 'semaphore', name: 'x', size: 2 });
    for (const at of [offset, offset + 8]) expect(isHeld(region.readBigUInt64LE(at))).toBe(true);
    expect(region.readBigUInt64LE(all.cell({ kind: 'counter', name: 'x' }).offset)).toBe(0n);
  });
});
