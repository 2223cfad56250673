/**
 * The window of PowerTCP (Addanki et al., "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI
 * 2022), from the normalised power, which is 1 on a full link without a queue:
 *
 *     W = gamma (Wold / power + beta) + (1 - gamma) W
 *
 * Wold is the window of one round trip ago, in which the packets acknowledged now were sent. Power is smoothed over T
 * by the time dt of a sample, at most T: power = ((T - dt) power + dt sample) / T.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { WINDOW_RATE_TABLE, WindowRateControl } from './window-rate.js';

/**
 * The floor of the smoothed power, as in the authors' simulator: the window at most doubles. While senders wait for a
 * queue to drain, power is near 0; without the floor they would then fill it again.
 */
const POWER_MIN = 0.5;

/** Defaults: the authors' simulator. */
export const POWER_WINDOW_TABLE = {
  ...WINDOW_RATE_TABLE,
  /** beta / T: the step of the additive increase. */
  additiveIncreaseBps: { default: 150e6, ...LIMITS.rateBps },
} as const satisfies ParameterTable;

export abstract class PowerWindow extends WindowRateControl {
  readonly #gain: number;
  readonly #additiveBytes: number;
  #power = 1;
  #windowBefore: number;

  constructor(parameters: ParametersOf<typeof POWER_WINDOW_TABLE>, gain: number) {
    super(parameters);
    this.#gain = gain;
    this.#additiveBytes = this.bytesOf(parameters.additiveIncreaseBps);
    this.#windowBefore = this.window;
  }

  protected smooth(power: number, elapsedNs: number): void {
    const weight = Math.min(1, elapsedNs / this.baseRttNs);
    this.#power = Math.max(POWER_MIN, (1 - weight) * this.#power + weight * power);
  }

  protected move(): void {
    const aim = this.#windowBefore / this.#power + this.#additiveBytes;
    this.window = this.#gain * aim + (1 - this.#gain) * this.window;
  }

  protected rememberWindow(): void {
    this.#windowBefore = this.window;
  }
}
