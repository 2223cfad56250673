import { expect, test } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import { drawBytes, meanBytes, WEB_SEARCH } from '../../src/sim/sizes.js';

test('the web search table has the mean and the share of small flows that are published', () => {
  expect(meanBytes(WEB_SEARCH)).toBe(1_711_250);
  const random = new SeededRandom(7).stream('sizes');
  const drawn = Array.from({ length: 50_000 }, () => drawBytes(WEB_SEARCH, random));
  expect(drawn.reduce((a, b) => a + b, 0) / drawn.length / 1_711_250).toBeCloseTo(1, 1);
  expect(drawn.filter((bytes) => bytes < 100_000).length / drawn.length).toBeCloseTo(0.542, 2);
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(1);
  expect(Math.max(...drawn)).toBeLessThanOrEqual(30_000_000);
});
