/**
 * The window of HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1), from U, the
 * utilization of the fullest link:
 *
 *     U >= eta, or incStage >= maxStage:   W = Wc / (U / eta) + W_AI
 *     else:                                W = Wc + W_AI
 *
 * Every acknowledgement computes W from the same Wc. Once per round trip Wc becomes W, and incStage is 0 after the
 * first line, one more after the second.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { WINDOW_RATE_TABLE, WindowRateControl } from './window-rate.js';

/** Defaults: the paper, and its simulator for W_AI and the floor. */
export const UTILIZATION_WINDOW_TABLE = {
  ...WINDOW_RATE_TABLE,
  /** eta: the utilization to keep. */
  targetUtilization: { default: 0.95, min: 0.1, max: 1 },
  /** maxStage: round trips of additive increase before one that is multiplicative. */
  increaseStages: { default: 5, min: 0, max: 1000, whole: true },
  /** W_AI / T: the step of the additive increase. It should be at most linkRateBps (1 - eta) / N for N flows. */
  additiveIncreaseBps: { default: 50e6, ...LIMITS.rateBps },
} as const satisfies ParameterTable;

export abstract class UtilizationWindow extends WindowRateControl {
  readonly #target: number;
  readonly #stagesMax: number;
  readonly #additiveBytes: number;
  #referenceBytes: number;
  #stage = 0;

  constructor(parameters: ParametersOf<typeof UTILIZATION_WINDOW_TABLE>) {
    super(parameters);
    this.#target = parameters.targetUtilization;
    this.#stagesMax = parameters.increaseStages;
    this.#additiveBytes = this.bytesOf(parameters.additiveIncreaseBps);
    this.#referenceBytes = this.window;
  }

  /** An acknowledgement reports the `utilization` of the most loaded link; 1: full, without a queue. */
  protected react(utilization: number, rttNs: number, now: number): void {
    const isMultiplicative = utilization >= this.#target || this.#stage >= this.#stagesMax;
    const scaled = isMultiplicative ? (this.#referenceBytes * this.#target) / utilization : this.#referenceBytes;
    this.window = scaled + this.#additiveBytes;
    if (!this.isNewRoundTrip(rttNs, now)) return;
    this.#stage = isMultiplicative ? 0 : this.#stage + 1;
    this.#referenceBytes = this.window;
  }
}
