/** Latency since the endpoint was opened, by operation and status, one bucket an octave: what a metrics scraper wants, and small. */

import type { GroupKey, GroupWindow } from './group-table.js';
import { BUCKETS, bucketStartNs, type SparseHistogram } from './histogram.js';
import { STAGES, type StageName } from './stages.js';

/** Upper bounds of the buckets in nanoseconds: 2^10 to 2^36. What is longer is in the count only. */
export const OCTAVE_BOUNDS_NS: readonly number[] = Array.from({ length: 27 }, (_, i) => 2 ** (10 + i));

/** Of each fine bucket, the first bound that it does not exceed; the last fine bucket exceeds all. */
const OCTAVE_OF = Uint8Array.from({ length: BUCKETS }, (_, bucket) => {
  const octave = OCTAVE_BOUNDS_NS.findIndex((bound) => bucketStartNs(bucket + 1) <= bound);
  return octave < 0 ? OCTAVE_BOUNDS_NS.length : octave;
});

/** One operation, status and stage. */
export interface OctaveSeries extends Omit<GroupKey, 'conn'> {
  /** Which stage. */
  readonly stage: StageName;
  /** Samples in each octave, not cumulative; the last element is what exceeds all bounds. */
  readonly counts: Float64Array;
  /** Samples. */
  count: number;
  /** Sum of the samples. */
  sumNs: number;
}

/** Totals of an endpoint, fed with each window as it closes. */
export class OctaveTotals {
  readonly #series = new Map<string, OctaveSeries>();

  /** Adds the groups of a closed window. */
  addWindow(groups: readonly GroupWindow[]): void {
    for (const group of groups) {
      group.stages.forEach((stage, i) => {
        if (stage.count > 0) addStage(this.#find(group, STAGES[i]), stage);
      });
    }
  }

  /** A copy that can be added to. */
  copy(): OctaveTotals {
    const copy = new OctaveTotals();
    for (const [key, series] of this.#series) copy.#series.set(key, { ...series, counts: series.counts.slice() });
    return copy;
  }

  /** One entry an operation, status and stage that has samples. */
  get series(): Iterable<OctaveSeries> {
    return this.#series.values();
  }

  #find({ op, status }: GroupKey, stage: StageName): OctaveSeries {
    const key = `${op}\n${status}\n${stage}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = { op, status, stage, counts: new Float64Array(OCTAVE_BOUNDS_NS.length + 1), count: 0, sumNs: 0 };
      this.#series.set(key, series);
    }
    return series;
  }
}

function addStage(to: OctaveSeries, { buckets, counts, count, sumNs }: SparseHistogram): void {
  for (let i = 0; i < buckets.length; i++) to.counts[OCTAVE_OF[buckets[i]]] += counts[i];
  to.count += count;
  to.sumNs += sumNs;
}
