/** How a document carries the latency of one operation: quantiles, and bars for a picture. */

import type { Histogram, HistogramBar, LatencySummary } from './histogram.js';

/** A bar is this many of the histogram's 32 buckets per octave. */
const BUCKETS_PER_BAR = 8;

export interface OpLatency extends LatencySummary {
  readonly op: string;
  readonly bars: readonly HistogramBar[];
}

export function opLatency(op: string, histogram: Histogram): OpLatency {
  return { op, ...histogram.summary(), bars: histogram.bars(BUCKETS_PER_BAR) };
}
