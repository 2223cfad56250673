/** What single messages of a transfer took: samples of latency with their quantiles, and the peak of bandwidth. */

import type { TransferPlan } from '@rocev2/cli';
import { NS_PER_S } from 'rocev2/internal/core';

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

/** Samples kept for percentiles; later ones of a longer test are left out. */
const LATENCY_SAMPLES_MAX = 1_000_000;

/** Latency samples in nanoseconds. */
export class LatencySamples {
  readonly #samples = new Float64Array(LATENCY_SAMPLES_MAX);
  #count = 0;

  /** One more; beyond a bound they are left out. */
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

/** perftest's bound: with more messages its search for the peak would take longer than the test. */
const PEAK_MESSAGES_MAX = 20_000;

/**
 * The peak as perftest defines it: of all runs of neighbouring messages, from the post of the first to the completion of the last, the one with
 * the least time a message.
 */
export class PeakFinder {
  readonly #postedNs: number[] = [];
  readonly #completedNs: number[] = [];

  /** Undefined for a run in time, for one of more than 20000 messages, and where nobody wants it. */
  static forPlan({ durationNs, iterations, qps }: TransferPlan, isWanted: boolean): PeakFinder | undefined {
    const isShort = durationNs === 0 && iterations * qps <= PEAK_MESSAGES_MAX;
    return isWanted && isShort ? new PeakFinder() : undefined;
  }

  /** The next `count` messages were posted. */
  posted(count: number, timeNs: number): void {
    for (let i = 0; i < count; i++) this.#postedNs.push(timeNs);
  }

  /** The next `count` messages are done. */
  completed(count: number, timeNs: number): void {
    for (let i = 0; i < count; i++) this.#completedNs.push(timeNs);
  }

  /** Bits a second; null when no message was completed. */
  peakBps(sizeBytes: number): number | null {
    const [posted, completed] = [this.#postedNs, this.#completedNs];
    if (completed.length === 0) return null;
    let leastNs = Number.POSITIVE_INFINITY;
    for (let first = 0; first < completed.length; first++) {
      for (let last = first; last < completed.length; last++) {
        // Of messages that were completed at one time only the last one can be the end of the best run.
        if (completed[last + 1] === completed[last]) continue;
        const ns = (completed[last] - posted[first]) / (last - first + 1);
        if (ns < leastNs) leastNs = ns;
      }
    }
    return (sizeBytes * 8 * NS_PER_S) / Math.max(leastNs, 1);
  }
}
