/** A difference of bigints would take memory for every packet. */

import { LOW_HALF, U32 } from 'rocev2/internal/core';

const STAMP = new BigUint64Array(1);
const HALVES = new Uint32Array(STAMP.buffer);
const HIGH_HALF = 1 - LOW_HALF;

export class CaptureClock {
  #firstLow = 0;
  #firstHigh = 0;

  begin(timestampNs: bigint): void {
    STAMP[0] = timestampNs;
    this.#firstLow = HALVES[LOW_HALF];
    this.#firstHigh = HALVES[HIGH_HALF];
  }

  /** Nanoseconds from the first packet to this stamp; below 0 before it, modulo 2^64, exact below 2^53. */
  sinceBegin(timestampNs: bigint): number {
    STAMP[0] = timestampNs;
    const low = HALVES[LOW_HALF];
    const borrow = low < this.#firstLow ? 1 : 0;
    const high = (HALVES[HIGH_HALF] - this.#firstHigh - borrow) | 0;
    return high * U32 + ((low - this.#firstLow) >>> 0);
  }
}
