/** A histogram as `.hgrm` text: what HdrHistogram's plotter and wrk2 read and write. */

import { requirePackage } from '../../core/packages.js';
import { NS_PER_US } from '../../core/units.js';
import { BUCKETS, bucketStartNs, type Histogram } from './histogram.js';

/** Lines for each halving of the distance to 100 %: HdrHistogram's own default. */
const TICKS_PER_HALF_DISTANCE = 5;

/** Values in microseconds. Each sample stands at the end of its bucket, or at the largest sample where that is less. */
export function toHgrm(histogram: Histogram): string {
  const { build } = requirePackage<typeof import('hdr-histogram-js')>('hdr-histogram-js');
  const hdr = build({ lowestDiscernibleValue: 1, highestTrackableValue: 2 ** 40, numberOfSignificantValueDigits: 3 });
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const count = histogram.countAt(bucket);
    if (count === 0) continue;
    const ns = Math.min(bucketStartNs(bucket + 1), histogram.maxNs);
    hdr.recordValueWithCount(Math.min(2 ** 40, Math.max(1, Math.round(ns))), count);
  }
  return hdr.outputPercentileDistribution(TICKS_PER_HALF_DISTANCE, NS_PER_US);
}
