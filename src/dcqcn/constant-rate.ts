/** The two schemes that listen to nobody: `none`, which never limits, and `fixed`, which always does. */

import { LIMITS, type ParametersOf, type ParameterTable } from './parameters.js';
import type { RateControl } from './rate-control.js';

export const FIXED_TABLE = {
  /** The rate, bits/s. */
  rateBps: { default: 10e9, ...LIMITS.rateBps },
} as const satisfies ParameterTable;

export class ConstantRate implements RateControl {
  readonly usesEcn = false;
  readonly rttSampleBytes = Number.POSITIVE_INFINITY;
  readonly #rateBps: number;

  constructor({ rateBps }: ParametersOf<typeof FIXED_TABLE>) {
    this.#rateBps = rateBps;
  }

  rateBps(_now: number): number {
    return this.#rateBps;
  }

  targetRateBps(_now: number): number {
    return this.#rateBps;
  }

  alpha(_now: number): number {
    return Number.NaN;
  }

  onSent(): void {}

  onCnp(_now: number): boolean {
    return false;
  }

  onRttSample(): void {}
}
