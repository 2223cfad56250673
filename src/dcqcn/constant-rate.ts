/** The two schemes without feedback: `none` without a limit, and `fixed` with a constant rate. */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { defineRateControl, RateControl } from './rate-control.js';

const FIXED_TABLE = {
  /** The rate, bits/s. */
  rateBps: { default: 10e9, ...LIMITS.rateBps },
} as const satisfies ParameterTable;

/** Sends at `rateBps`, bits/s of the link, indefinitely; Infinity: without a limit. */
export class ConstantRate extends RateControl {
  readonly #rateBps: number;

  constructor({ rateBps }: ParametersOf<typeof FIXED_TABLE>) {
    super();
    this.#rateBps = rateBps;
  }

  override rateBps(_now: number): number {
    return this.#rateBps;
  }
}

export const none = defineRateControl({
  name: 'none',
  summary: 'as fast as the link allows',
  parameters: {},
  isPaced: false,
  create: () => new ConstantRate({ rateBps: Number.POSITIVE_INFINITY }),
});

export const fixed = defineRateControl({
  name: 'fixed',
  summary: 'a constant rate',
  parameters: FIXED_TABLE,
  create: (parameters) => new ConstantRate(parameters),
});
