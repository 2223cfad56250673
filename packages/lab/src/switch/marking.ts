import { type RandomSource, randomUnit } from 'rocev2/internal/core';
import type { MarkingConfig, PiConfig, RedConfig } from './switch-config.js';

export interface Marker {
  decide(queueBytes: number, nowNs: number): boolean;
}

export function newMarker(config: MarkingConfig, random: RandomSource): Marker {
  return config.kind === 'red' ? new RedMarker(config, random) : new PiMarker(config, random);
}

export const NO_MARKING: Marker = { decide: () => false };

/** The congestion point of DCQCN (SIGCOMM'15 §3.1): RED without averaging. */
class RedMarker implements Marker {
  readonly #kminBytes: number;
  readonly #kmaxBytes: number;
  readonly #slopePerByte: number;
  readonly #random: RandomSource;

  constructor({ kminBytes, kmaxBytes, pmax }: RedConfig, random: RandomSource) {
    this.#kminBytes = kminBytes;
    this.#kmaxBytes = kmaxBytes;
    this.#slopePerByte = kmaxBytes > kminBytes ? pmax / (kmaxBytes - kminBytes) : 0;
    this.#random = random;
  }

  decide(queueBytes: number): boolean {
    if (queueBytes <= this.#kminBytes) return false;
    if (queueBytes > this.#kmaxBytes) return true;
    return randomUnit(this.#random) < (queueBytes - this.#kminBytes) * this.#slopePerByte;
  }
}

/**
 * The PI controller in its continuous form, p = K1 q + I with dI/dt = K2 (q - reference), advanced at each packet; the
 * queue counts as constant since the last one. I is kept where p stays within 0..1, so that it does not wind up.
 */
class PiMarker implements Marker {
  readonly #config: PiConfig;
  readonly #random: RandomSource;
  #integral = 0;
  #seenBytes = 0;
  #seenNs = 0;

  constructor(config: PiConfig, random: RandomSource) {
    this.#config = config;
    this.#random = random;
  }

  decide(queueBytes: number, nowNs: number): boolean {
    const { referenceBytes, proportionalPerByte, integralPerByteSecond } = this.#config;
    const seconds = (nowNs - this.#seenNs) * 1e-9;
    const proportional = proportionalPerByte * queueBytes;
    const integral = this.#integral + integralPerByteSecond * (this.#seenBytes - referenceBytes) * seconds;
    this.#integral = Math.min(Math.max(integral, -proportional), 1 - proportional);
    this.#seenBytes = queueBytes;
    this.#seenNs = nowNs;
    const probability = proportional + this.#integral;
    return probability > 0 && randomUnit(this.#random) < probability;
  }
}
