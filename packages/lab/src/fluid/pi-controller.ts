/**
 * Proportional-integral marking (CoNEXT'16, section 5): dp/dt = K1 de/dt + K2 e with e = q - q_ref. Rest means e = 0,
 * so the queue length no longer depends on the number of flows. The form is continuous, so it does not depend on the
 * step of a solver.
 */

import { checkParameters } from '../check-arguments.js';
import { add, type Complex, complex, divide, scale } from './complex.js';

/** Gains of the continuous PI controller (CoNEXT'16, section 5). */
export interface PiGains {
  /** The queue to hold. */
  readonly referenceBytes: number;
  /** K1: marking probability per byte of error. */
  readonly proportionalPerByte: number;
  /** K2: marking probability per byte of error and second. */
  readonly integralPerByteSecond: number;
}

/**
 * For DCQCN at 40 Gb/s. The paper does not print its continuous gains; these were found by search and hold 2, 10 and 64
 * flows at 4 us and at 85 us. They are stable but not the only ones.
 */
export const DCQCN_PI: PiGains = {
  referenceBytes: 200_000,
  proportionalPerByte: 2e-8,
  integralPerByteSecond: 5e-7,
};

export function checkPiGains(gains: PiGains): void {
  checkParameters('a PI controller', gains, Object.keys(DCQCN_PI));
}

/** The controller in the frequency domain, per packet of `packetBytes`: K1 + K2/s. */
export function piResponse(gains: PiGains, packetBytes: number, s: Complex): Complex {
  return scale(add(complex(gains.proportionalPerByte), divide(complex(gains.integralPerByteSecond), s)), packetBytes);
}
