/**
 * What a TIMELY sender does with a delay sample, as strategies of one model: the original law, the patched one, and
 * proportional-integral control at the host (CoNEXT'16, sections 4 and 5). Bits and bits/s.
 */

import { checkOneOf } from 'rocev2/internal/core';
import { checkFlows, checkParameters } from '../check-arguments.js';
import { type PatchedTimelyModelParameters, type TimelyModelParameters, timelyInBits } from './timely-parameters.js';

/** A sender's law. Queues and thresholds in bits, rates in bits/s; the gradient has no unit. */
export interface TimelyRateLaw {
  /** The change of the rate over one update interval, given the delayed queue and the normalised RTT gradient. */
  change(group: number, rate: number, queue: number, gradient: number): number;
  /** Shows a law with memory the newest and the previous delay sample of a group; `seconds` is the step. */
  observe(group: number, queue: number, previousQueue: number, seconds: number): void;
}

function observeNothing(): void {}

/** Algorithm 1: additive increase while the delay falls, decrease by the gradient while it grows. */
export class OriginalTimelyLaw implements TimelyRateLaw {
  readonly #parameters;

  constructor(parameters: TimelyModelParameters) {
    this.#parameters = timelyInBits(parameters);
  }

  change(_group: number, rate: number, queue: number, gradient: number): number {
    const { additiveIncrease, decrease, lowQueue, highQueue } = this.#parameters;
    if (queue < lowQueue) return additiveIncrease;
    if (queue > highQueue) return -decrease * (1 - highQueue / queue) * rate;
    return gradient <= 0 ? additiveIncrease : -gradient * decrease * rate;
  }

  readonly observe = observeNothing;
}

/**
 * Algorithm 2: between the thresholds, increase and the error against a reference queue are weighed by the gradient.
 */
export class PatchedTimelyLaw implements TimelyRateLaw {
  readonly #parameters;
  readonly #weightSlope: number;

  constructor(parameters: PatchedTimelyModelParameters) {
    checkParameters('patched TIMELY', parameters, ['weightSlope']);
    this.#parameters = timelyInBits(parameters);
    this.#weightSlope = parameters.weightSlope;
  }

  change(_group: number, rate: number, queue: number, gradient: number): number {
    const { additiveIncrease, decrease, lowQueue, highQueue } = this.#parameters;
    if (queue < lowQueue) return additiveIncrease;
    if (queue > highQueue) return -decrease * (1 - highQueue / queue) * rate;
    const weight = Math.min(Math.max(this.#weightSlope * gradient + 0.5, 0), 1);
    return (1 - weight) * additiveIncrease - (weight * decrease * rate * (queue - lowQueue)) / lowQueue;
  }

  readonly observe = observeNothing;
}

/** Gains of the PI controller at the host; {@link publishedHostPi} has those of the paper. */
export interface HostPiGains {
  /** The queue to hold. */
  readonly referenceBytes: number;
  /** Weight of the newest error, per byte and second. */
  readonly newestPerByteSecond: number;
  /**
   * Weight of the error one update earlier, per byte and second: slightly less, the difference is the integral part.
   */
  readonly previousPerByteSecond: number;
}

export function checkHostPiGains(gains: HostPiGains): void {
  checkParameters('a PI controller', gains, ['referenceBytes', 'newestPerByteSecond', 'previousPerByteSecond']);
}

/** The published gains for 10 Gb/s and segments of 64 KB; the reference lies half way between Tlow and Thigh. */
export function publishedHostPi(parameters: TimelyModelParameters): HostPiGains {
  const { capacity, segment, lowQueue, highQueue } = timelyInBits(parameters);
  const perBitSecond = 1.816e-9 / ((10 * segment) / capacity);
  return {
    referenceBytes: (lowQueue + highQueue) / 2 / 8,
    newestPerByteSecond: 1.0005 * perBitSecond * 8,
    previousPerByteSecond: perBitSecond * 8,
  };
}

/**
 * dR/dt = (delta - p R/2) / tau*, with p driven by the error of the delay. `per-flow`: every host computes its own p,
 * which pins the queue but leaves the shares where they were. `shared`: all flows see one p, as if a switch had
 * computed it; then they are equal too.
 */
export class HostPiLaw implements TimelyRateLaw {
  readonly #additiveIncrease: number;
  readonly #gains: HostPiGains;
  readonly #shared: boolean;
  readonly #signals: Float64Array;

  constructor(parameters: TimelyModelParameters, gains: HostPiGains, scope: 'per-flow' | 'shared', groups: number) {
    checkHostPiGains(gains);
    checkOneOf('scope', scope, ['per-flow', 'shared']);
    checkFlows(groups);
    this.#additiveIncrease = timelyInBits(parameters).additiveIncrease;
    this.#gains = gains;
    this.#shared = scope === 'shared';
    this.#signals = new Float64Array(this.#shared ? 1 : groups);
  }

  change(group: number, rate: number): number {
    return this.#additiveIncrease - (this.#signals[this.#shared ? 0 : group] * rate) / 2;
  }

  observe(group: number, queue: number, previousQueue: number, seconds: number): void {
    if (this.#shared && group > 0) return;
    const { referenceBytes, newestPerByteSecond, previousPerByteSecond } = this.#gains;
    const slope =
      newestPerByteSecond * (queue / 8 - referenceBytes) - previousPerByteSecond * (previousQueue / 8 - referenceBytes);
    this.#signals[group] += seconds * slope;
  }
}
