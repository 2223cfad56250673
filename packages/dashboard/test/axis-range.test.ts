import { describe, expect, it } from 'vitest';
import { axisRange } from '../src/page/axis-range.js';

/** Whether so many ticks on the axis are that many numbers: a loop over them ends. */
function hasTicks([from, to]: [number | null, number | null]): boolean {
  const ticks = Array.from({ length: 20 }, (_, i) => from! + ((to! - from!) * i) / 20);
  return new Set(ticks).size === ticks.length;
}

/** Seconds since 1970, as the page has them of running programs. */
const NOW = 1_795_418_743.123;

describe('an axis of time', () => {
  it.each([
    [NOW, NOW],
    [NOW, NOW + 5e-7],
    [3.2, 3.2],
    [3.2, 3.2 + Number.EPSILON * 4],
    [0, 0],
  ])('from %d to %d gets a width', (from, to) => {
    expect(hasTicks([from, to])).toBe(false);
    const [left, right] = axisRange(from, to);
    expect(hasTicks([left, right])).toBe(true);
    expect(left).toBeLessThan(from);
    expect(right).toBeGreaterThan(to);
  });

  it.each([
    [NOW, NOW + 60],
    [NOW, NOW + 0.005],
    [0, 1e-6],
  ])('from %d to %d stays as it is', (from, to) => {
    expect(axisRange(from, to)).toEqual([from, to]);
    expect(hasTicks([from, to])).toBe(true);
  });

  it('of nothing stays empty', () => {
    expect(axisRange(null, null)).toEqual([null, null]);
  });
});
