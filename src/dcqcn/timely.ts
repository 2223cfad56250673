/**
 * TIMELY (SIGCOMM'15, algorithm 1): between the thresholds the rate follows the gradient of the round-trip time alone.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import { defineRateControl } from './rate-control.js';
import { RTT_GRADIENT_TABLE, RttGradientControl } from './rtt-gradient.js';

/** Defaults: SIGCOMM'15 at 10 Gb/s. */
export const TIMELY_TABLE = {
  ...RTT_GRADIENT_TABLE,
  /** HAI: after this many samples without a rising RTT in a row... */
  hyperIncreaseAfter: { default: 5, min: 1, max: 1e6, whole: true },
  hyperIncreaseFactor: { default: 5, min: 1, max: 1000 },
} as const satisfies ParameterTable;

export type TimelyParameters = ParametersOf<typeof TIMELY_TABLE>;

/** Algorithm 1, hyper increase included. */
export class Timely extends RttGradientControl {
  readonly #timely: TimelyParameters;
  #samplesWithoutRise = 0;

  constructor(parameters: TimelyParameters) {
    super(parameters);
    this.#timely = parameters;
  }

  protected override stepInside(rateBps: number, _rttNs: number, gradient: number): number {
    const { decrease, additiveIncreaseBps, hyperIncreaseAfter, hyperIncreaseFactor } = this.#timely;
    if (gradient > 0) {
      this.#samplesWithoutRise = 0;
      return -rateBps * decrease * gradient;
    }
    this.#samplesWithoutRise++;
    return additiveIncreaseBps * (this.#samplesWithoutRise >= hyperIncreaseAfter ? hyperIncreaseFactor : 1);
  }

  protected override leaveBand(): void {
    this.#samplesWithoutRise = 0;
  }
}

export const timely = defineRateControl({
  name: 'timely',
  summary: 'follows the gradient of the round-trip time',
  parameters: TIMELY_TABLE,
  create: (parameters) => new Timely(parameters),
});
