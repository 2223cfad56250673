/** A histogram as `.hgrm` text: what HdrHistogram's plotter and wrk2 read and write. */

import { build } from 'hdr-histogram-js';
import { NS_PER_US } from 'rocev2/internal/core';
import type { HistogramDocument } from 'rocev2/internal/estats';

/** Lines for each halving of the distance to 100 %: HdrHistogram's own default. */
const TICKS_PER_HALF_DISTANCE = 5;

/** Values in microseconds. Each sample is at the end of its bucket, or at the largest sample where that is less. */
export function toHgrm({ summary, buckets }: HistogramDocument): string {
  const hdr = build({ lowestDiscernibleValue: 1, highestTrackableValue: 2 ** 40, numberOfSignificantValueDigits: 3 });
  for (const [, toNs, count] of buckets) {
    const ns = Math.min(toNs ?? Number.POSITIVE_INFINITY, summary.maxNs);
    hdr.recordValueWithCount(Math.min(2 ** 40, Math.max(1, Math.round(ns))), count);
  }
  return hdr.outputPercentileDistribution(TICKS_PER_HALF_DISTANCE, NS_PER_US);
}
