import { expect, test } from 'vitest';
import { jainIndex, mean, quantile, Samples } from '../../src/sim/statistics.js';

test('quantiles are values that occurred, by nearest rank', () => {
  const ascending = [1, 2, 3, 4];
  expect([0, 0.25, 0.5, 0.51, 0.99, 1].map((p) => quantile(ascending, p))).toEqual([1, 1, 2, 3, 4, 4]);
  expect(quantile([], 0.5)).toBeNaN();
});

test("Jain's index is 1 for equal shares and 1/n for one that has all", () => {
  expect(jainIndex([5, 5, 5])).toBeCloseTo(1);
  expect(jainIndex([9, 0, 0])).toBeCloseTo(1 / 3);
  expect(jainIndex([7.7, 1.74])).toBeCloseTo(0.715, 3);
  expect(jainIndex([])).toBe(1);
});

test('samples grow beyond their first size and keep their order', () => {
  const samples = new Samples();
  for (let i = 3000; i > 0; i--) samples.add(i);
  expect(samples.values[0]).toBe(3000);
  expect(samples.sorted()[0]).toBe(1);
  expect(mean(samples.values)).toBe(1500.5);
});
