/** Flat arrays, nothing allocated; an idle stage is the sparse form of a {@link Histogram}. */

import { BUCKETS, bucketOfHighWord, HIGH_WORD, type SparseHistogram, sparseHistogram } from './histogram.js';
import { STAGE_COUNT, STAGE_T6_T1 } from './stages.js';

const sample = new Float64Array(STAGE_COUNT);
const sampleWords = new Int32Array(sample.buffer);

export class StageHistograms {
  readonly #counts = new Uint32Array(STAGE_COUNT * BUCKETS);
  readonly #sums = new Float64Array(STAGE_COUNT);
  readonly #mins = new Float64Array(STAGE_COUNT).fill(Number.POSITIVE_INFINITY);
  readonly #maxs = new Float64Array(STAGE_COUNT);
  count = 0;

  record(t1: number, t2: number, t3: number, t4: number, t5: number, t6: number): void {
    sample[0] = t2 - t1;
    sample[1] = t3 - t2;
    sample[2] = t4 - t3;
    sample[3] = t5 - t4;
    sample[4] = t6 - t5;
    sample[5] = t5 - t1;
    sample[6] = t6 - t1;
    this.#add(0, STAGE_COUNT);
  }

  /** A failure: it may not have reached all stages, only the whole is known. */
  recordWhole(ns: number): void {
    sample[STAGE_T6_T1] = ns;
    this.#add(STAGE_T6_T1, STAGE_T6_T1 + 1);
  }

  #add(first: number, end: number): void {
    const counts = this.#counts;
    const sums = this.#sums;
    const mins = this.#mins;
    const maxs = this.#maxs;
    for (let stage = first; stage < end; stage++) {
      const ns = sample[stage];
      counts[stage * BUCKETS + bucketOfHighWord(sampleWords[2 * stage + HIGH_WORD])]++;
      sums[stage] += ns;
      if (ns < mins[stage]) mins[stage] = ns;
      if (ns > maxs[stage]) maxs[stage] = ns;
    }
    this.count++;
  }

  reset(): void {
    this.#counts.fill(0);
    this.#sums.fill(0);
    this.#mins.fill(Number.POSITIVE_INFINITY);
    this.#maxs.fill(0);
    this.count = 0;
  }

  sparse(stage: number): SparseHistogram {
    const counts = this.#counts.subarray(stage * BUCKETS, (stage + 1) * BUCKETS);
    // The clocks of two threads may differ by a microsecond.
    return sparseHistogram(counts, this.#sums[stage], Math.max(0, this.#mins[stage]), this.#maxs[stage]);
  }
}
