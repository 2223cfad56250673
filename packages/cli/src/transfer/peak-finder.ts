/** The peak bandwidth of a test, as perftest defines it. */

import { NS_PER_S } from 'rocev2/internal/core';
import type { TransferPlan } from './endpoint.js';

/** perftest's bound: with more messages its search for the peak would take longer than the test. */
const PEAK_MESSAGES_MAX = 20_000;

/**
 * The peak as perftest defines it: of all runs of neighbouring messages, from the post of the first to the completion
 * of the last, the one with the least time a message.
 */
export class PeakFinder {
  readonly #postedNs: number[] = [];
  readonly #completedNs: number[] = [];

  static forPlan({ durationNs, iterations, qps }: TransferPlan, isWanted: boolean): PeakFinder | undefined {
    const isShort = durationNs === 0 && iterations * qps <= PEAK_MESSAGES_MAX;
    return isWanted && isShort ? new PeakFinder() : undefined;
  }

  posted(count: number, timeNs: number): void {
    for (let i = 0; i < count; i++) this.#postedNs.push(timeNs);
  }

  completed(count: number, timeNs: number): void {
    for (let i = 0; i < count; i++) this.#completedNs.push(timeNs);
  }

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
