/** Latency of one operation as a document carries it. */

import type { Histogram } from './histogram.js';
import type { OpLatency } from './op-latency-document.js';

/** A bar is so many of the histogram's 32 buckets an octave. */
const BUCKETS_PER_BAR = 8;

/** The document of one operation's histogram. */
export function opLatency(op: string, histogram: Histogram): OpLatency {
  return { op, ...histogram.summary(), bars: histogram.bars(BUCKETS_PER_BAR) };
}
