/**
 * Randomness is passed in. Live endpoints pass the operating system's generator (keys, QPNs and start PSNs must not be
 * guessable); simulations and tests pass named streams of a seed.
 */

import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { checkText, checkWhole } from './arguments.js';

/** Where random numbers come from. Every value of the range is equally likely. */
export interface RandomSource {
  /** The next unsigned 32-bit number. */
  u32(): number;
}

export function randomInt(source: RandomSource, min: number, max: number): number {
  const span = max - min + 1;
  // Two draws give 53 bits, so that the modulo bias is below 2^-21 for any span the project uses.
  const wide = (source.u32() >>> 11) * 0x1_0000_0000 + source.u32();
  return min + (wide % span);
}

export function randomUnit(source: RandomSource): number {
  return ((source.u32() >>> 5) * 0x4000000 + (source.u32() >>> 6)) / 0x20000000000000;
}

/** FNV-1a over the UTF-16 units: derives a separate seed from each stream name. */
function hashName(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash;
}

/**
 * Independent, repeatable streams of one seed. A stream depends only on the seed and its name, so that an added stream
 * never changes the numbers of others.
 */
export class SeededRandom {
  /** Any safe integer; a run is repeated with the same one. */
  readonly seed: number;

  constructor(seed: number) {
    checkWhole('seed', seed, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    this.seed = seed;
  }

  /** A stream at its beginning: the same name gives the same numbers again. */
  stream(name: string): RandomSource {
    checkText('the name of a stream', name);
    const generator = xoroshiro128plus(Math.imul(this.seed, 0x9e3779b1) ^ hashName(name));
    return { u32: () => generator.next() >>> 0 };
  }
}
