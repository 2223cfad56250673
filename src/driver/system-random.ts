/**
 * The operating system's generator as a random source: keys, QPNs and start PSNs of live endpoints must not be
 * guessable.
 */

import { randomFillSync } from 'node:crypto';
import type { RandomSource } from '../core/random.js';

export function systemRandom(): RandomSource {
  const block = new Uint32Array(64);
  let used = block.length;
  return {
    u32: () => {
      if (used === block.length) {
        randomFillSync(block);
        used = 0;
      }
      return block[used++];
    },
  };
}
