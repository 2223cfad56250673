/** The reaction point of DCQCN as differential equations: CoNEXT'16, equations (3) to (5). */

import type { DcqcnEvents } from './dcqcn-events.js';
import type { DcqcnInPackets } from './dcqcn-parameters.js';

/**
 * `events` must hold the terms of the delayed marking probability and the delayed rate; the rates given here are the
 * present ones. Packets/s and seconds.
 */
export function dcqcnDerivatives(
  parameters: DcqcnInPackets,
  events: DcqcnEvents,
  currentRate: number,
  targetRate: number,
  alpha: number,
  out: Float64Array,
): void {
  const { cnpInterval, alphaInterval, gain, additiveIncrease } = parameters;
  const cutsPerSecond = events.cutProbability / cnpInterval;
  const gap = targetRate - currentRate;
  out[0] = (-currentRate * alpha * cutsPerSecond) / 2 + (gap / 2) * events.recoveries;
  out[1] = -gap * cutsPerSecond + additiveIncrease * events.additiveIncreases;
  out[2] = (gain / alphaInterval) * (events.alphaMarkProbability - alpha);
}
