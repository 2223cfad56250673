import { describe, expect, it } from 'vitest';
import { logTicks } from '../../src/plot/log-ticks.js';

const wide = (ticks: readonly number[]) => ticks.map((tick) => Math.round(tick));

describe('ticks of a logarithmic axis', () => {
  it('are 1, 2 and 5 of each decade, only powers of ten over many decades, and the ends within less than a step', () => {
    expect(wide(logTicks(800, 30_000))).toEqual([1000, 2000, 5000, 10_000, 20_000]);
    expect(wide(logTicks(1000, 2e6))).toEqual([1000, 10_000, 100_000, 1_000_000]);
    expect(wide(logTicks(1200, 1900))).toEqual([1200, 1900]);
  });
});
