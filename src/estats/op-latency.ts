/** Latency of one operation as a document carries it: quantiles, and bars for a picture. Nanoseconds. */

import { z } from 'zod';
import type { Histogram } from './histogram.js';

const number = z.number();

/** Count, sum, bounds and quantiles in nanoseconds. */
export const summarySchema = z.object({
  count: number,
  sumNs: number,
  minNs: number,
  p50Ns: number,
  p90Ns: number,
  p99Ns: number,
  p999Ns: number,
  maxNs: number,
});

/** Parses {@link OpLatency}. */
export const opLatencySchema = summarySchema.extend({
  op: z.string(),
  /** Those that hold something, in ascending order: a quarter of an octave each. */
  bars: z.array(z.object({ fromNs: number, toNs: number, count: number })),
});

/** Latency of one operation. */
export type OpLatency = z.infer<typeof opLatencySchema>;

/** A bar is so many of the histogram's 32 buckets an octave. */
const BUCKETS_PER_BAR = 8;

/** The document of one operation's histogram. */
export function opLatency(op: string, histogram: Histogram): OpLatency {
  return { op, ...histogram.summary(), bars: histogram.bars(BUCKETS_PER_BAR) };
}
