/**
 * Patched TIMELY: between the thresholds the rate also follows the absolute RTT, so that all flows converge to one
 * fixed point.
 *
 * Source: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT'16,
 * algorithm 2: R = R + delta (1 - w) - R beta w (RTT - RTT_ref)/RTT_ref, where w grows with the gradient g from 0 to 1
 * as weightSlope g + 1/2.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { defineRateControl } from './rate-control.js';
import { RTT_GRADIENT_TABLE, RttGradientControl } from './rtt-gradient.js';

/** Defaults: CoNEXT'16 at 10 Gb/s, its smaller segments and steps down. */
export const PATCHED_TIMELY_TABLE = {
  ...RTT_GRADIENT_TABLE,
  segmentBytes: { default: 16_000, ...LIMITS.bytesOrZero },
  decrease: { default: 0.008, ...LIMITS.share },
  /** RTT_ref: where increase and decrease balance. */
  referenceRttNs: { default: 50_000, ...LIMITS.timeNs },
  /** dw/dg: 2 in algorithm 2; the published phase margins belong to 1/2. */
  weightSlope: { default: 2, min: 0.01, max: 100 },
} as const satisfies ParameterTable;

export type PatchedTimelyParameters = ParametersOf<typeof PATCHED_TIMELY_TABLE>;

export class PatchedTimely extends RttGradientControl {
  readonly #patched: PatchedTimelyParameters;

  constructor(parameters: PatchedTimelyParameters) {
    super(parameters);
    this.#patched = parameters;
  }

  protected override stepInside(rateBps: number, rttNs: number, gradient: number): number {
    const { weightSlope, referenceRttNs, additiveIncreaseBps, decrease } = this.#patched;
    const weight = Math.min(1, Math.max(0, weightSlope * gradient + 0.5));
    const error = (rttNs - referenceRttNs) / referenceRttNs;
    return additiveIncreaseBps * (1 - weight) - rateBps * decrease * weight * error;
  }

  protected override leaveBand(): void {}
}

export const patchedTimely = defineRateControl({
  name: 'patched-timely',
  summary: 'follows gradient and length of the round-trip time',
  parameters: PATCHED_TIMELY_TABLE,
  create: (parameters) => new PatchedTimely(parameters),
});
