/**
 * Log-linear histogram of nanoseconds, as HdrHistogram keeps them: 32 buckets an octave from 2^10 ns (1.02 us) to 2^36
 * ns (68.7 s), one below and one above. A bucket is at most 1/32 as wide as its lowest value, so a quantile is at most
 * 3.2 % too high, never too low. Merging is adding.
 */

const OCTAVE_FIRST = 10;
const OCTAVE_END = 36;
const PER_OCTAVE = 32;
const LINEAR = (OCTAVE_END - OCTAVE_FIRST) * PER_OCTAVE;
/** Bucket 0 holds what is shorter than 2^10 ns, the last one what is not shorter than 2^36 ns. */
export const BUCKETS = LINEAR + 2;

/**
 * The exponent and the five leading bits of the mantissa of an IEEE 754 double are the bucket; 1023 is the exponent's
 * bias. Negative times are negative here too, and fall into bucket 0.
 */
const FIRST_CODE = (1023 + OCTAVE_FIRST) * PER_OCTAVE;
const MANTISSA_REST_BITS = 15;

/** Which 32-bit word of a double has the exponent. */
export const HIGH_WORD = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0;

export function bucketOfHighWord(word: number): number {
  const code = (word >> MANTISSA_REST_BITS) - FIRST_CODE;
  if (code < 0) return 0;
  return code >= LINEAR ? BUCKETS - 1 : code + 1;
}

const float = new Float64Array(1);
const words = new Int32Array(float.buffer);

export function bucketOf(ns: number): number {
  float[0] = ns;
  return bucketOfHighWord(words[HIGH_WORD]);
}

/** The shortest time of the bucket; `bucketStartNs(bucket + 1)` is where it ends. */
export function bucketStartNs(bucket: number): number {
  if (bucket === 0) return 0;
  if (bucket >= BUCKETS) return Number.POSITIVE_INFINITY;
  const code = bucket - 1;
  return 2 ** (OCTAVE_FIRST + Math.floor(code / PER_OCTAVE)) * (1 + (code % PER_OCTAVE) / PER_OCTAVE);
}

export interface SparseHistogram {
  readonly count: number;
  readonly sumNs: number;
  readonly minNs: number;
  readonly maxNs: number;
  readonly buckets: Uint16Array;
  readonly counts: Uint32Array;
}

/** Samples in a few numbers, nanoseconds; all 0 without samples. */
export interface LatencySummary {
  /** How many samples. */
  readonly count: number;
  /** All samples added up. */
  readonly sumNs: number;
  /** Least sample. */
  readonly minNs: number;
  /** Median. */
  readonly p50Ns: number;
  /** 90th percentile. */
  readonly p90Ns: number;
  /** 99th percentile. */
  readonly p99Ns: number;
  /** 99.9th percentile. */
  readonly p999Ns: number;
  /** Largest sample. */
  readonly maxNs: number;
}

export interface HistogramBar {
  readonly fromNs: number;
  readonly toNs: number;
  readonly count: number;
}

export class Histogram {
  readonly #counts = new Uint32Array(BUCKETS);
  count = 0;
  sumNs = 0;
  minNs = Number.POSITIVE_INFINITY;
  maxNs = 0;

  record(ns: number): void {
    this.#counts[bucketOf(ns)]++;
    this.count++;
    this.sumNs += ns;
    if (ns < this.minNs) this.minNs = ns;
    if (ns > this.maxNs) this.maxNs = ns;
  }

  reset(): void {
    if (this.count === 0) return;
    this.#counts.fill(0);
    this.count = 0;
    this.sumNs = 0;
    this.minNs = Number.POSITIVE_INFINITY;
    this.maxNs = 0;
  }

  add(other: SparseHistogram): void {
    const { buckets, counts } = other;
    for (let i = 0; i < buckets.length; i++) this.#counts[buckets[i]] += counts[i];
    this.count += other.count;
    this.sumNs += other.sumNs;
    this.minNs = Math.min(this.minNs, other.minNs);
    this.maxNs = Math.max(this.maxNs, other.maxNs);
  }

  countAt(bucket: number): number {
    return this.#counts[bucket];
  }

  /**
   * The time that a share `q` (0..1] of all samples does not exceed: the end of the bucket it lies in, but not more
   * than the largest sample.
   */
  quantileNs(q: number): number {
    const wanted = Math.max(1, Math.ceil(q * this.count));
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.#counts[bucket];
      if (seen >= wanted) return Math.min(bucketStartNs(bucket + 1), this.maxNs);
    }
    return 0;
  }

  get meanNs(): number {
    return this.count === 0 ? 0 : this.sumNs / this.count;
  }

  /** The mean with every sample weighted by its own length: the delay seen at a random moment of the time they fill. */
  get weightedMeanNs(): number {
    let squares = 0;
    let sum = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      if (this.#counts[bucket] === 0) continue;
      const ns = Math.min(bucketStartNs(bucket + 1), this.maxNs);
      squares += this.#counts[bucket] * ns * ns;
      sum += this.#counts[bucket] * ns;
    }
    return sum === 0 ? 0 : squares / sum;
  }

  summary(): LatencySummary {
    return {
      count: this.count,
      sumNs: this.sumNs,
      minNs: this.count === 0 ? 0 : this.minNs,
      p50Ns: this.quantileNs(0.5),
      p90Ns: this.quantileNs(0.9),
      p99Ns: this.quantileNs(0.99),
      p999Ns: this.quantileNs(0.999),
      maxNs: this.maxNs,
    };
  }

  bars(buckets: number): HistogramBar[] {
    const bars: HistogramBar[] = [];
    for (let from = 0; from < BUCKETS; from += buckets) {
      const to = Math.min(from + buckets, BUCKETS);
      let count = 0;
      for (let bucket = from; bucket < to; bucket++) count += this.#counts[bucket];
      const toNs = to === BUCKETS ? this.maxNs : bucketStartNs(to);
      if (count > 0) bars.push({ fromNs: bucketStartNs(from), toNs, count });
    }
    return bars;
  }

  toSparse(): SparseHistogram {
    return sparseHistogram(this.#counts, this.sumNs, this.minNs, this.maxNs);
  }
}

export function sparseHistogram(all: Uint32Array, sumNs: number, minNs: number, maxNs: number): SparseHistogram {
  const filled: number[] = [];
  let count = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    if (all[bucket] === 0) continue;
    filled.push(bucket);
    count += all[bucket];
  }
  return {
    count,
    sumNs,
    minNs,
    maxNs,
    buckets: Uint16Array.from(filled),
    counts: Uint32Array.from(filled, (bucket) => all[bucket]),
  };
}
