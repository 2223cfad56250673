/** What judges whether a long run stays flat. */

import { expect, it } from 'vitest';
import { growthOf } from './growth.js';

/** 200 samples of a saw tooth between 100 and 140, and what comes on top. */
const samples = (more: (k: number) => number) =>
  Array.from({ length: 200 }, (_, k) => ({ at: k * 500, value: 100 + ((k * 13) % 40) + more(k) }));

it('a saw tooth is flat, whatever its warm-up was', () => {
  expect(Math.abs(growthOf(samples(() => 0)))).toBeLessThan(5);
  expect(Math.abs(growthOf(samples((k) => Math.min(k, 80) * 10)))).toBeLessThan(5);
});

it('twin: a leak below the saw tooth is found, with its size', () => {
  expect(growthOf(samples((k) => k * 0.3))).toBeCloseTo(30, -1);
});

it('bursts are no growth, and neither hide one', () => {
  const burst = (k: number) => (k > 150 && k < 165 ? 1000 : 0);
  expect(Math.abs(growthOf(samples(burst)))).toBeLessThan(5);
  expect(growthOf(samples((k) => burst(k) + k * 0.3))).toBeGreaterThan(20);
});

it('refuses to judge a handful of samples', () => {
  expect(() => growthOf(samples(() => 0).slice(0, 20))).toThrow(/20 samples are too few: 32 at least/);
});
