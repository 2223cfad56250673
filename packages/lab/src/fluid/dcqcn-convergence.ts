/**
 * How fast DCQCN flows become equal: the discrete AIMD model of CoNEXT'16, section 3.3. Time is cut into cycles of one
 * rate cut and then additive steps; over a cycle the differences between flows shrink by 1 - alpha/2, so convergence is
 * exponential.
 *
 * Here Rt(next) = (1 - alpha/2) Rc + (length - 1) R_AI and alpha(next) = (1-g)^(length-1) ((1-g) alpha + g), time in
 * units of the alpha interval.
 */

import { checkFlows } from '../check-arguments.js';
import { type DcqcnParameters, dcqcnInPackets } from './dcqcn-parameters.js';
import { bisect } from './root.js';

/** Result of {@link dcqcnConvergence} for equal flows (CoNEXT'16, section 3.3). */
export interface DcqcnConvergence {
  /** alpha at the start of each cycle, once it no longer changes. */
  readonly alpha: number;
  /** Length of a cycle in alpha intervals. */
  readonly cycleIntervals: number;
  /** Bound on the time until the flows' rates differ by at most a tenth of a fair share. */
  readonly boundNs: number;
}

const RESIDUAL_SHARE = 0.1;

/** The steady cycle of `flows` flows and the convergence bound that follows from it. */
export function dcqcnConvergence(parameters: DcqcnParameters, flows: number): DcqcnConvergence {
  checkFlows(flows);
  const { capacity, gain, additiveIncrease, alphaInterval, kmax } = dcqcnInPackets(parameters);
  const increasePerInterval = flows * additiveIncrease * alphaInterval;
  // Additive steps until the queue they build reaches Kmax, where every flow is sure to be cut.
  const stepsToKmax = (-1 + Math.sqrt(1 + (8 * kmax) / increasePerInterval)) / 2;
  const cycleLength = (alpha: number): number =>
    2 + (stepsToKmax / 2 + capacity / (2 * flows * additiveIncrease)) * alpha;
  const drift = (alpha: number): number => (1 - gain) ** (cycleLength(alpha) - 1) * ((1 - gain) * alpha + gain) - alpha;
  const alpha = bisect(drift, 0, 1, 1e-15);
  const cycleIntervals = cycleLength(alpha);
  const cycles = Math.log(RESIDUAL_SHARE / flows) / Math.log1p(-alpha / 2);
  return { alpha, cycleIntervals, boundNs: cycles * cycleIntervals * parameters.alphaIntervalNs };
}
