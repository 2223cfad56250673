/** Choices of a seeded test: a named random stream with the draws that plans are made of. */

import { type RandomSource, randomInt, randomUnit } from '../../src/core/random.js';

export class Dice {
  readonly source: RandomSource;

  constructor(source: RandomSource) {
    this.source = source;
  }

  /** An integer in [min, max], both included. */
  int(min: number, max: number): number {
    return randomInt(this.source, min, max);
  }

  /** A number in [min, max), evenly spread over its logarithm. */
  logUniform(min: number, max: number): number {
    return min * (max / min) ** randomUnit(this.source);
  }

  chance(probability: number): boolean {
    return randomUnit(this.source) < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.int(0, choices.length - 1)];
  }

  /** Picks by weight: [weight, choice] pairs. */
  weighted<T>(choices: ReadonlyArray<readonly [number, T]>): T {
    let left = randomUnit(this.source) * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    return choices[choices.length - 1][1];
  }

  u64(): bigint {
    return (BigInt(this.source.u32()) << 32n) | BigInt(this.source.u32());
  }
}

/** Fills bytes from the stream. */
export function fillRandom(bytes: Uint8Array, source: RandomSource): void {
  let word = 0;
  for (let i = 0; i < bytes.length; i++) {
    word = i % 4 === 0 ? source.u32() : word >>> 8;
    bytes[i] = word;
  }
}
