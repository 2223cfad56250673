/** Figures of a transfer in both directions. */

import { expect, it } from 'vitest';
import { LatencySamples } from '../../command/src/latency-samples.js';
import type { TransferPlan } from '../src/transfer/endpoint.js';
import { figuresOf, measuredOf } from '../src/transfer/figures.js';

const plan = { sizeBytes: 1000, bidirectional: true, rateControl: { name: 'none' } } as unknown as TransferPlan;
const tally = { counts: [60, 40], lost: 0, seconds: 1, latency: new LatencySamples(), peakBps: 850_000 };
const returned = { counts: [100], seconds: 1, arrived: undefined, peakBps: 900_000 };

it('the peak of two directions is their sum, so that it is not below the average', () => {
  const { peakBps, goodputBps } = figuresOf(plan, measuredOf(plan, tally, returned));
  expect([goodputBps, peakBps]).toEqual([1_600_000, 1_750_000]);
  expect(measuredOf(plan, tally).peakBps).toBe(850_000);
});

it('there is no peak where one direction has none', () => {
  expect(measuredOf(plan, tally, { ...returned, peakBps: null }).peakBps).toBeNull();
  expect(measuredOf(plan, { ...tally, peakBps: null }, returned).peakBps).toBeNull();
});
