/**
 * Patched TIMELY at rest and near rest (CoNEXT'16, section 4.3). The original TIMELY has neither: as published it has
 * no fixed point, with the equality moved it has infinitely many.
 */

import { checkWhole } from 'rocev2/internal/core';
import { checkFlows, checkNumber, checkParameters, FLOWS_MAX } from '../check-arguments.js';
import { add, type Complex, complex, divide, multiply, product, scale, subtract, unitPhasor } from './complex.js';
import { DELAY_SECONDS_MAX, type OpenLoop } from './phase-margin.js';
import { type PatchedTimelyModelParameters, timelyInBits } from './timely-parameters.js';

/** The fixed point of patched TIMELY (CoNEXT'16, section 4.3). */
export interface PatchedTimelyFixedPoint {
  /** The queue at which increase and decrease balance. */
  readonly queueBytes: number;
  /** Per flow. */
  readonly rateBps: number;
}

/** Flat gradient, half weight, equal shares: q* = q' (1 + N delta / (beta C)), with q' = C Tlow. */
export function patchedTimelyFixedPoint(
  parameters: PatchedTimelyModelParameters,
  flows: number,
): PatchedTimelyFixedPoint {
  checkFlows(flows);
  const { capacity, lowQueue, additiveIncrease, decrease } = timelyInBits(parameters);
  return {
    queueBytes: (lowQueue * (1 + (flows * additiveIncrease) / (decrease * capacity))) / 8,
    rateBps: capacity / flows,
  };
}

/**
 * The published bound on the time until the flows' rates differ by at most a tenth of a fair share: differences shrink
 * as e^(-delta (N-1) t / (2 Seg)). At least two flows.
 */
export function patchedTimelyConvergenceBoundNs(parameters: PatchedTimelyModelParameters, flows: number): number {
  checkWhole('flows', flows, 2, FLOWS_MAX);
  const { segment, additiveIncrease } = timelyInBits(parameters);
  return (1e9 * Math.log(flows / 0.1) * 2 * segment) / (additiveIncrease * (flows - 1));
}

/**
 * The loop linearised at the fixed point. It is exact for the model; the published curves are the same loop with a
 * weight slope of 1/2. `delaySeconds` is the propagation part of the feedback delay.
 */
export function patchedTimelyLoop(
  parameters: PatchedTimelyModelParameters,
  flows: number,
  delaySeconds: number,
): OpenLoop {
  checkFlows(flows);
  checkNumber('delaySeconds', delaySeconds, 0, DELAY_SECONDS_MAX);
  checkParameters('patched TIMELY', parameters, ['weightSlope']);
  const { capacity, mtu, segment, gain, decrease, additiveIncrease, lowQueue, minRtt } = timelyInBits(parameters);
  const rate = capacity / flows;
  const queue = patchedTimelyFixedPoint(parameters, flows).queueBytes * 8;
  const feedbackDelay = (queue + mtu) / capacity + delaySeconds;
  const updateInterval = Math.max(segment / rate, minRtt);
  return {
    delaySeconds: feedbackDelay + updateInterval,
    response(omega): Complex {
      const s = complex(0, omega);
      const queueTerm = divide(complex((rate ** 2 * decrease * flows) / 2 / lowQueue), s);
      const gradientPole = complex(gain * rate, segment * omega);
      const gradientTerm = divide(
        scale(
          subtract(complex(1), unitPhasor(-omega * updateInterval)),
          2 * parameters.weightSlope * additiveIncrease * gain * rate,
        ),
        scale(multiply(gradientPole, s), minRtt),
      );
      const ratePole = complex(additiveIncrease / 2, segment * omega);
      return product(divide(add(queueTerm, gradientTerm), ratePole), unitPhasor(-omega * feedbackDelay));
    },
  };
}
