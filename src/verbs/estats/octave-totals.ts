import type { GroupKey, GroupWindow } from './group-table.js';
import { BUCKETS, bucketStartNs, type SparseHistogram } from './histogram.js';
import { STAGES, type StageName } from './stages.js';

export const OCTAVE_BOUNDS_NS: readonly number[] = Array.from({ length: 27 }, (_, i) => 2 ** (10 + i));

/** Of each fine bucket, the first bound that it does not exceed; the last fine bucket exceeds all. */
const OCTAVE_OF = Uint8Array.from({ length: BUCKETS }, (_, bucket) => {
  const octave = OCTAVE_BOUNDS_NS.findIndex((bound) => bucketStartNs(bucket + 1) <= bound);
  return octave < 0 ? OCTAVE_BOUNDS_NS.length : octave;
});

export interface OctaveSeries extends Omit<GroupKey, 'conn'> {
  readonly stage: StageName;
  readonly counts: Float64Array;
  count: number;
  sumNs: number;
}

export class OctaveTotals {
  readonly #series = new Map<string, OctaveSeries>();

  addWindow(groups: readonly GroupWindow[]): void {
    for (const group of groups) {
      group.stages.forEach((stage, i) => {
        if (stage.count > 0) addStage(this.#find(group, STAGES[i]), stage);
      });
    }
  }

  copy(): OctaveTotals {
    const copy = new OctaveTotals();
    for (const [key, series] of this.#series) copy.#series.set(key, { ...series, counts: series.counts.slice() });
    return copy;
  }

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
