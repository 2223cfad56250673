/** When marks are answered. */

import { describe, expect, it } from 'vitest';
import { NotificationPoint } from '../../src/dcqcn/notification-point.js';

describe('a notification point', () => {
  it('since the last notification answers the first mark at once, and the next when the interval is over', () => {
    const point = new NotificationPoint(50, false);
    expect([10, 20, 59, 60, 61, 110].map((now) => point.onMarked(now))).toEqual([
      true,
      false,
      false,
      true,
      false,
      true,
    ]);
    expect(point.dueNs).toBe(Number.POSITIVE_INFINITY);
  });

  it('free-running answers at ticks, once, however many marks came, and not without one', () => {
    const point = new NotificationPoint(50, true);
    expect([10, 20, 59].map((now) => point.onMarked(now))).toEqual([false, false, false]);
    expect(point.dueNs).toBe(60);
    expect([point.onTick(59), point.onTick(60), point.onTick(60), point.onTick(110)]).toEqual([
      false,
      true,
      false,
      false,
    ]);
    point.onMarked(200);
    expect(point.dueNs).toBe(210); // The phase is that of the first mark.
    point.onMarked(260);
    expect(point.onTick(210)).toBe(true);
  });

  it('without an interval answers every mark at once, whatever the phase', () => {
    const point = new NotificationPoint(0, true);
    expect([1, 1, 2].map((now) => point.onMarked(now))).toEqual([true, true, true]);
  });
});
