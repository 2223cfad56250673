import { describe, expect, test } from 'vitest';
import { NaglePolicy, NoDelayPolicy } from '../../src/window/release-policy.js';

const MAT = 1000;

describe('NoDelay', () => {
  test('every block is acknowledged at once, by id, in the order it became free', () => {
    const policy = new NoDelayPolicy();
    policy.onFreed(2);
    policy.onFreed(1);
    expect([policy.due(), policy.due(), policy.due()]).toEqual([{ id: 2 }, { id: 1 }, undefined]);
    expect(policy.deadlineNs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('Nagle', () => {
  function policyOf(mas: number, used: number): NaglePolicy {
    const policy = new NaglePolicy({ maxAvailableSegments: mas, maxAckTimeNs: MAT }, 8);
    for (let id = 1; id <= used; id++) policy.onUsed(id);
    return policy;
  }

  test('MAS free blocks are acknowledged together, by count', () => {
    const policy = policyOf(3, 4);
    policy.onFreed(1, 0);
    policy.onFreed(2, 1);
    expect(policy.due(2)).toBeUndefined();
    policy.onFreed(3, 2);
    expect(policy.due(2)).toEqual({ count: 3 });
    expect(policy.due(2)).toBeUndefined();
  });

  test('fewer are acknowledged when the oldest has waited MAT, and not before', () => {
    const policy = policyOf(3, 4);
    expect(policy.deadlineNs).toBe(Number.POSITIVE_INFINITY);
    policy.onFreed(1, 50);
    policy.onFreed(2, 900);
    expect(policy.deadlineNs).toBe(50 + MAT);
    expect(policy.due(50 + MAT - 1)).toBeUndefined();
    expect(policy.due(50 + MAT)).toEqual({ count: 2 });
  });

  test('a block freed out of order is not counted before those used earlier are free: a count means the oldest', () => {
    const policy = policyOf(2, 3);
    policy.onFreed(2, 0);
    policy.onFreed(3, 0);
    expect(policy.due(10 * MAT)).toBeUndefined();
    policy.onFreed(1, 20 * MAT);
    expect(policy.due(20 * MAT)).toEqual({ count: 3 });
  });

  test.each([0, 9, 1.5])('MAS %d in a pool of 8 is refused: it would deadlock', (mas) => {
    expect(() => new NaglePolicy({ maxAvailableSegments: mas, maxAckTimeNs: MAT }, 8)).toThrow(/MAS is .* 1 to 8/);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('MAT %d is refused: it would deadlock', (mat) => {
    expect(() => new NaglePolicy({ maxAvailableSegments: 1, maxAckTimeNs: mat }, 8)).toThrow(/finite/);
  });
});
