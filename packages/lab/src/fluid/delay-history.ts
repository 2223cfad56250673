/**
 * Invariants: the ring is allocated once; before the first sample the past was constant (the usual initial function of
 * a DDE); an age beyond the ring reads the oldest sample held, so that memory stays bounded in every state.
 */

import { RoceError } from 'rocev2/internal/core';

/** 128 MiB of samples: longer pasts than any of these models has a use for. */
const MAX_VALUES = 2 ** 24;

export class DelayHistory {
  readonly #channels: number;
  readonly #stepSeconds: number;
  readonly #mask: number;
  readonly #samples: Float64Array;
  #newest = 0;
  #newerOffset = 0;
  #olderOffset = 0;
  #olderWeight = 0;

  constructor(stepSeconds: number, maxAgeSeconds: number, initial: ArrayLike<number>) {
    // One sample for age zero, and one so that the largest age still has an older neighbour.
    const needed = Math.ceil(maxAgeSeconds / stepSeconds) + 2;
    const capacity = 2 ** Math.ceil(Math.log2(needed));
    if (!(capacity * initial.length <= MAX_VALUES)) {
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        `a delay of ${maxAgeSeconds * 1e3} ms needs too much memory`,
        'use a shorter delay, fewer separate flows or a higher rate',
      );
    }
    this.#channels = initial.length;
    this.#stepSeconds = stepSeconds;
    this.#mask = capacity - 1;
    this.#samples = new Float64Array(capacity * initial.length);
    for (let i = 0; i < capacity; i++) this.#samples.set(initial, i * initial.length);
  }

  get maxAgeSeconds(): number {
    return (this.#mask - 1) * this.#stepSeconds;
  }

  push(values: ArrayLike<number>): void {
    this.#newest = (this.#newest + 1) & this.#mask;
    this.#samples.set(values, this.#newest * this.#channels);
  }

  seek(ageSeconds: number): void {
    const steps = Math.min(Math.max(ageSeconds / this.#stepSeconds, 0), this.#mask - 1);
    const whole = Math.floor(steps);
    this.#newerOffset = ((this.#newest - whole) & this.#mask) * this.#channels;
    this.#olderOffset = ((this.#newest - whole - 1) & this.#mask) * this.#channels;
    this.#olderWeight = steps - whole;
  }

  value(channel: number): number {
    const newer = this.#samples[this.#newerOffset + channel];
    return newer + this.#olderWeight * (this.#samples[this.#olderOffset + channel] - newer);
  }
}
