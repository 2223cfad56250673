/** How a document carries the latency of one operation: quantiles, and bars for a picture. Nanoseconds. */

import { z } from 'zod';

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
