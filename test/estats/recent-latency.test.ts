import { expect, it } from 'vitest';
import { RecentLatency } from '../../src/verbs/estats/recent-latency.js';

const MINUTE = 60e9;

it('covers the minute that goes on and the one before, and nothing older', () => {
  let now = 0;
  const latency = new RecentLatency(() => now);
  const count = () => latency.histogram().count;
  latency.record(1000);
  now = 0.9 * MINUTE;
  latency.record(2000);
  expect(count()).toBe(2);
  now = 1.5 * MINUTE;
  latency.record(3000);
  expect(count()).toBe(3);
  now = 2.1 * MINUTE;
  expect(count()).toBe(1);
  expect(latency.histogram().maxNs).toBe(3000);
  now = 3.1 * MINUTE;
  expect(count()).toBe(0);
});

it('forgets everything when nothing happened for two minutes', () => {
  let now = 0;
  const latency = new RecentLatency(() => now);
  latency.record(1000);
  now = 2.5 * MINUTE;
  expect(latency.histogram().count).toBe(0);
  latency.record(500);
  now = 3.5 * MINUTE;
  expect(latency.histogram().count).toBe(1);
});
