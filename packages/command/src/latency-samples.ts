/** Samples of latency and their quantiles. */

/** Quantiles of the samples, in nanoseconds. */
export interface LatencyNs {
  /** Least sample. */
  readonly min: number;
  /** Median. */
  readonly p50: number;
  /** 90th percentile. */
  readonly p90: number;
  /** 99th percentile. */
  readonly p99: number;
  /** 99.9th percentile. */
  readonly p999: number;
  /** Largest sample. */
  readonly max: number;
}

const LATENCY_SAMPLES_MAX = 1_000_000;

/** Latency samples in nanoseconds. */
export class LatencySamples {
  readonly #samples = new Float64Array(LATENCY_SAMPLES_MAX);
  #count = 0;

  /** Adds a sample; those beyond a bound are ignored. */
  add(ns: number): void {
    if (this.#count < LATENCY_SAMPLES_MAX) this.#samples[this.#count++] = ns;
  }

  /** Null when there are no samples. */
  summary(): LatencyNs | null {
    if (this.#count === 0) return null;
    const sorted = this.#samples.slice(0, this.#count).sort();
    const at = (q: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]);
    return {
      min: at(0),
      p50: at(0.5),
      p90: at(0.9),
      p99: at(0.99),
      p999: at(0.999),
      max: Math.round(sorted[sorted.length - 1]),
    };
  }
}
