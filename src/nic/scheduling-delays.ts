/**
 * Batches that left later than the time that their timers are counted from: the system had taken the processor away between the reading of the clock and the sending.
 * Without it a peer that has had no time to answer looks silent.
 *
 * Invariant: the last {@link REMEMBERED} are known. One that is forgotten counts as punctual.
 */

/** Such batches come milliseconds apart at least, and a timer that has more of them behind it has run for long. */
const REMEMBERED = 16;

/** What one NIC remembers of them. Times are nanoseconds. */
export class HeldUpBatches {
  readonly #stampsNs = new Float64Array(REMEMBERED).fill(Number.NaN);
  readonly #heldUpNs = new Float64Array(REMEMBERED);
  #next = 0;

  /** A batch that was made at `stampNs` left `heldUpNs` later. */
  add(stampNs: number, heldUpNs: number): void {
    this.#stampsNs[this.#next] = stampNs;
    this.#heldUpNs[this.#next] = heldUpNs;
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** How much later than `stampNs` the batch left that was made then; 0: at once, as far as is known. */
  of(stampNs: number): number {
    const index = this.#stampsNs.indexOf(stampNs);
    return index < 0 ? 0 : this.#heldUpNs[index];
  }
}
