/**
 * Stability of a linearised feedback loop with delay, by its open-loop frequency response: the phase margin is the
 * least 180 degrees + arg L(i w) over all frequencies w at which |L| = 1. The loop is stable while it is positive.
 *
 * The argument is followed continuously from low frequency, where a loop with one or two integrators lags between 0 and
 * 360 degrees, because delay can turn it by more than a full circle before the gain has fallen to one.
 */

import { checkObject, NS_PER_S } from 'rocev2/internal/core';
import { checkFunction, checkNumber } from '../check-arguments.js';
import { argument, type Complex, magnitude } from './complex.js';
import { bisect } from './root.js';

/** A feedback loop cut open, in the frequency domain. */
export interface OpenLoop {
  /** The response to a sine wave of `omega` rad/s, sign chosen so that closing the loop is 1 + L. */
  response(omega: number): Complex;
  /** The longest delay in the loop: it bounds how fast the phase can turn. */
  readonly delaySeconds: number;
}

/** How far a loop is from instability. */
export interface PhaseMargin {
  /** Stable while above 0. */
  readonly degrees: number;
  /** The crossover that has the least margin. */
  readonly crossoverRadPerSecond: number;
}

/** The steps of the search grow shorter with the delay. */
export const DELAY_SECONDS_MAX = 1;

const LOWEST_OMEGA = 1;
const HIGHEST_OMEGA = 1e6;
const POINTS_PER_DECADE = 100;

function degrees(radians: number): number {
  return (radians * 180) / Math.PI;
}

function unwrap(principal: number, previous: number): number {
  return principal + 2 * Math.PI * Math.round((previous - principal) / (2 * Math.PI));
}

/** The margin, or null when the gain crosses one nowhere between 1 rad/s and 1 Mrad/s. */
export function phaseMargin(loop: OpenLoop): PhaseMargin | null {
  checkObject('an open loop', loop, 'an object: response, delaySeconds');
  checkFunction('response of an open loop', loop.response);
  checkNumber('delaySeconds of an open loop', loop.delaySeconds, 0, DELAY_SECONDS_MAX);
  const ratio = 10 ** (1 / POINTS_PER_DECADE);
  const largestStep = Math.PI / 4 / loop.delaySeconds;
  let omega = LOWEST_OMEGA;
  let here = loop.response(omega);
  checkObject('the response of an open loop', here, 'a complex number');
  let phase = argument(here);
  if (phase > 0) phase -= 2 * Math.PI;
  let least: PhaseMargin | null = null;
  while (omega < HIGHEST_OMEGA) {
    const nextOmega = Math.min(omega * ratio, omega + largestStep);
    const next = loop.response(nextOmega);
    if (magnitude(here) >= 1 !== magnitude(next) >= 1) {
      const crossover = bisect((w) => magnitude(loop.response(w)) - 1, omega, nextOmega, omega * 1e-12);
      const margin = 180 + degrees(unwrap(argument(loop.response(crossover)), phase));
      if (least === null || margin < least.degrees) least = { degrees: margin, crossoverRadPerSecond: crossover };
    }
    phase = unwrap(argument(next), phase);
    omega = nextOmega;
    here = next;
  }
  return least;
}

/**
 * The delay at which the margin reaches zero, in nanoseconds: 0 when the loop is unstable without any delay, null when
 * it is still stable at `upToNs`. `loopAt` builds the loop for a delay in seconds.
 */
export function criticalDelayNs(loopAt: (delaySeconds: number) => OpenLoop, upToNs = 2_000_000): number | null {
  checkFunction('loopAt', loopAt);
  checkNumber('upToNs', upToNs, 1, DELAY_SECONDS_MAX * NS_PER_S);
  const marginAt = (delayNs: number): number =>
    phaseMargin(loopAt(delayNs * 1e-9))?.degrees ?? Number.POSITIVE_INFINITY;
  // Margins fall with delay but not everywhere: the first loss of stability is found by stepping, then refined.
  const stepNs = upToNs / 100;
  let stableNs = 0;
  if (marginAt(stableNs) <= 0) return 0;
  while (stableNs < upToNs) {
    const nextNs = stableNs + stepNs;
    if (marginAt(nextNs) <= 0) return bisect((delayNs) => marginAt(delayNs), stableNs, nextNs, 1);
    stableNs = nextNs;
  }
  return null;
}
