/** Stamps of a capture as numbers that count from its first packet. A difference of bigints would take memory for every packet. */

const STAMP = new BigUint64Array(1);
const HALVES = new Uint32Array(STAMP.buffer);
/** Where the low half stands on this machine. */
const LOW = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

/** Of one capture. */
export class CaptureClock {
  #firstLow = 0;
  #firstHigh = 0;

  /** The stamp of the first packet. */
  begin(timestampNs: bigint): void {
    STAMP[0] = timestampNs;
    this.#firstLow = HALVES[LOW];
    this.#firstHigh = HALVES[HIGH];
  }

  /** Nanoseconds from the first packet to this stamp; below 0 before it, modulo 2^64, exact below 2^53. */
  sinceBegin(timestampNs: bigint): number {
    STAMP[0] = timestampNs;
    const low = HALVES[LOW];
    const borrow = low < this.#firstLow ? 1 : 0;
    const high = (HALVES[HIGH] - this.#firstHigh - borrow) | 0;
    return high * 0x1_0000_0000 + ((low - this.#firstLow) >>> 0);
  }
}
