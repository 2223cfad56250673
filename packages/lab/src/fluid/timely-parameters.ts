/**
 * Sources: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM'15 (algorithm 1,
 * defaults); Zhu et al., "ECN or Delay", CoNEXT'16 (fluid model, patched TIMELY).
 */

import { RoceError } from 'rocev2/internal/core';
import { checkParameters } from '../check-arguments.js';

/** TIMELY's parameters in bits/s, bytes and nanoseconds, under the names of the papers. */
export interface TimelyModelParameters {
  /** Capacity C of the bottleneck. */
  readonly linkRateBps: number;
  /** Packet at the bottleneck: its transmission time is part of the feedback delay. */
  readonly mtuBytes: number;
  /** Seg: bytes sent per RTT sample. */
  readonly segmentBytes: number;
  /** alpha: EWMA gain of the RTT difference. */
  readonly gain: number;
  /** beta: decrease factor. */
  readonly decrease: number;
  /** delta: additive increase step. */
  readonly additiveIncreaseBps: number;
  /** Below this queueing delay the rate always grows. */
  readonly lowDelayNs: number;
  /** Above this queueing delay the rate always falls. */
  readonly highDelayNs: number;
  /** D_minRTT: unit of the gradient, and the least time between rate updates. */
  readonly minRttNs: number;
  /** Floor of the rate. The model needs one: its update interval Seg/R grows without limit as R falls. */
  readonly minimumRateBps: number;
}

/** TIMELY of SIGCOMM'15 as modelled in CoNEXT'16: 10 Gb/s, segments of 64 KB. */
export const TIMELY_SIGCOMM15: TimelyModelParameters = {
  linkRateBps: 10e9,
  mtuBytes: 1000,
  segmentBytes: 64_000,
  gain: 0.875,
  decrease: 0.8,
  additiveIncreaseBps: 10e6,
  lowDelayNs: 50_000,
  highDelayNs: 500_000,
  minRttNs: 20_000,
  minimumRateBps: 10e6,
};

/** TIMELY's parameters and the one that the patch adds (CoNEXT'16, algorithm 2). */
export interface PatchedTimelyModelParameters extends TimelyModelParameters {
  /**
   * dw/dg: how fast the weight of the absolute error turns from 0 to 1 around a flat gradient. Algorithm 2 says 2, the
   * published phase margins were computed with 1/2.
   */
  readonly weightSlope: number;
}

/** Patched TIMELY of CoNEXT'16, algorithm 2: segments of 16 KB, beta 0.008, w = 2 g + 1/2. */
export const PATCHED_TIMELY_CONEXT16: PatchedTimelyModelParameters = {
  ...TIMELY_SIGCOMM15,
  segmentBytes: 16_000,
  decrease: 0.008,
  weightSlope: 2,
};

/** Patched TIMELY under PI control at the host: CoNEXT'16, section 5, goes back to segments of 64 KB. */
export const PATCHED_TIMELY_PI_CONEXT16: PatchedTimelyModelParameters = {
  ...PATCHED_TIMELY_CONEXT16,
  segmentBytes: 64_000,
};

export const PUBLISHED_MARGIN_WEIGHT_SLOPE = 0.5;

export interface TimelyInBits {
  /** C, bits/s. */
  readonly capacity: number;
  readonly mtu: number;
  readonly segment: number;
  /** alpha, 0..1. */
  readonly gain: number;
  /** beta, 0..1. */
  readonly decrease: number;
  /** delta, bits/s. */
  readonly additiveIncrease: number;
  readonly lowQueue: number;
  readonly highQueue: number;
  /** D_minRTT, seconds. */
  readonly minRtt: number;
  readonly minimumRate: number;
}

export function timelyInBits(parameters: TimelyModelParameters): TimelyInBits {
  checkParameters('TIMELY', parameters, Object.keys(TIMELY_SIGCOMM15));
  if (parameters.highDelayNs <= parameters.lowDelayNs) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'TIMELY highDelayNs must be above lowDelayNs');
  }
  const capacity = parameters.linkRateBps;
  return {
    capacity,
    mtu: parameters.mtuBytes * 8,
    segment: parameters.segmentBytes * 8,
    gain: parameters.gain,
    decrease: parameters.decrease,
    additiveIncrease: parameters.additiveIncreaseBps,
    lowQueue: capacity * parameters.lowDelayNs * 1e-9,
    highQueue: capacity * parameters.highDelayNs * 1e-9,
    minRtt: parameters.minRttNs * 1e-9,
    minimumRate: parameters.minimumRateBps,
  };
}
