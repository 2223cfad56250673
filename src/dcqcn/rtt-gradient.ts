/**
 * Common part of TIMELY and patched TIMELY: the gradient of the round-trip time, and the two thresholds outside of
 * which it is not used.
 *
 * Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM'15, algorithm 1. Only
 * acknowledged packets give samples: SEND and WRITE. READ responses give none, and leave at the present rate of the
 * flow.
 *
 * There is one sample in a round trip, or one in a segment of a fixed size. Slow flows then get feedback less often
 * than fast ones, and starve: packages/lab/docs/lab.md. With proportionalSteps, samples closer together than minRttNs
 * count in proportion, so that the rate moves at most by one step in that time. Invariant: minimumRateBps <= rate <=
 * linkRateBps.
 */

import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { RateControl } from './rate-control.js';

/** Defaults: the constants of both papers at 10 Gb/s. */
export const RTT_GRADIENT_TABLE = {
  /** Line rate: the ceiling. */
  linkRateBps: { default: 10e9, ...LIMITS.rateBps },
  minimumRateBps: { default: 10e6, ...LIMITS.rateBps },
  /** Where a flow starts: C/(n+1) with n flows active on the host. 0: at the line rate. */
  initialRateBps: { default: 0, ...LIMITS.rateOrZeroBps },
  /** Seg: bytes between round-trip samples. 0: one sample in a round trip. */
  segmentBytes: { default: 0, ...LIMITS.bytesOrZero },
  /** alpha: EWMA gain of the RTT difference. */
  gain: { default: 0.875, ...LIMITS.share },
  /** beta: decrease factor. */
  decrease: { default: 0.8, ...LIMITS.share },
  /** delta: additive increase step. */
  additiveIncreaseBps: { default: 10e6, ...LIMITS.rateBps },
  /** Tlow: below it the rate always grows. */
  lowRttNs: { default: 50_000, ...LIMITS.timeNs },
  /** Thigh: above it the rate always falls. */
  highRttNs: { default: 500_000, ...LIMITS.timeNs },
  /** D_minRTT: the unit of the gradient, and the time in which the rate moves by one step. */
  minRttNs: { default: 20_000, ...LIMITS.timeNs },
  /**
   * 1: a sample that comes earlier than minRttNs after the last one moves the rate by min(1, elapsed / minRttNs) of a
   * step. 0: every sample moves it by a whole step (HPCC's simulator).
   */
  proportionalSteps: { default: 1, ...LIMITS.flag },
} as const satisfies ParameterTable;

type RttGradientParameters = ParametersOf<typeof RTT_GRADIENT_TABLE>;

/** TIMELY without its step between the thresholds, which subclasses supply. */
export abstract class RttGradientControl extends RateControl {
  override readonly rttSampleBytes: number;
  readonly #p: RttGradientParameters;
  #rate: number;
  #previousRttNs = Number.NaN;
  #rttDifferenceNs = 0;
  #updatedNs = Number.NaN;

  constructor(parameters: RttGradientParameters) {
    super();
    const { lowRttNs, highRttNs, minimumRateBps, linkRateBps, initialRateBps } = parameters;
    if (lowRttNs >= highRttNs) throw new RoceError('ERR_ROCE_CONFLICT', 'highRttNs must be above lowRttNs');
    if (minimumRateBps > linkRateBps) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'minimumRateBps is above linkRateBps');
    }
    this.#p = parameters;
    this.rttSampleBytes = parameters.segmentBytes;
    this.#rate = this.#bounded(initialRateBps === 0 ? linkRateBps : initialRateBps);
  }

  override rateBps(_now: number): number {
    return this.#rate;
  }

  override onRttSample(rttNs: number, now: number): void {
    const { gain, minRttNs, proportionalSteps } = this.#p;
    const isFirst = Number.isNaN(this.#previousRttNs);
    const differenceNs = isFirst ? 0 : rttNs - this.#previousRttNs;
    const isWhole = isFirst || proportionalSteps === 0;
    const weight = isWhole ? 1 : Math.min(1, (now - this.#updatedNs) / minRttNs);
    this.#previousRttNs = rttNs;
    this.#updatedNs = now;
    this.#rttDifferenceNs = (1 - gain) * this.#rttDifferenceNs + gain * differenceNs;
    const step = this.#step(rttNs, this.#rttDifferenceNs / minRttNs);
    this.#rate = this.#bounded(this.#rate + weight * step);
  }

  /** The change of the rate that a whole minRttNs with this sample makes, bits/s. */
  #step(rttNs: number, gradient: number): number {
    const { lowRttNs, highRttNs, additiveIncreaseBps, decrease } = this.#p;
    if (rttNs >= lowRttNs && rttNs <= highRttNs) return this.stepInside(this.#rate, rttNs, gradient);
    this.leaveBand();
    return rttNs < lowRttNs ? additiveIncreaseBps : -this.#rate * decrease * (1 - highRttNs / rttNs);
  }

  protected abstract stepInside(rateBps: number, rttNs: number, gradient: number): number;

  protected abstract leaveBand(): void;

  #bounded(rateBps: number): number {
    return Math.min(this.#p.linkRateBps, Math.max(this.#p.minimumRateBps, rateBps));
  }
}
