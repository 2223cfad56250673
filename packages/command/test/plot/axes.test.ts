import { describe, expect, it } from 'vitest';
import { exactScale } from '../../src/plot/axes.js';

/** Seconds since 1970, as the page has them of running programs. */
const NOW = 1_795_418_743.123;

describe('an axis that ends where its values end', () => {
  it.each([
    [NOW, NOW],
    [NOW, NOW + 5e-7],
    [3.2, 3.2 + Number.EPSILON * 4],
    [0, 0],
    [NOW, NOW + 60],
    [0, 1e-6],
  ])('from %d to %d has some ticks, each in the axis', (from, to) => {
    const { ticks, position } = exactScale(from, to, 8);
    expect(ticks.length).toBeLessThan(20);
    for (const { value } of ticks) {
      expect(position(value)).toBeGreaterThanOrEqual(0);
      expect(position(value)).toBeLessThanOrEqual(1);
    }
    expect(position(from)).toBe(to > from ? 0 : 0.5);
  });

  it('has round ticks of one step', () => {
    expect(exactScale(0, 10, 5).ticks.map(({ label }) => label)).toEqual(['0', '2', '4', '6', '8', '10']);
    expect(exactScale(0.5, 3.2, 4).ticks.map(({ label }) => label)).toEqual(['1', '2', '3']);
  });
});
