/**
 * Scheduling-delay compensation: which batches left later than the time that their timers are counted from, because the
 * system had taken the processor away between the reading of the clock and the sending. Without it a peer that has had
 * no time to answer looks silent.
 *
 * Invariant: the last {@link REMEMBERED} are known. One that is forgotten counts as sent at once.
 */

/** Such batches come milliseconds apart at least, so a timer that has more of them has run for long. */
const REMEMBERED = 16;

/** The delayed batches of one NIC. Times are nanoseconds. */
export class SchedulingDelays {
  readonly #stampsNs = new Float64Array(REMEMBERED).fill(Number.NaN);
  readonly #delaysNs = new Float64Array(REMEMBERED);
  #next = 0;

  /** A batch that was made at `stampNs` left `delayNs` later. */
  add(stampNs: number, delayNs: number): void {
    this.#stampsNs[this.#next] = stampNs;
    this.#delaysNs[this.#next] = delayNs;
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** How much later than `stampNs` the batch left that was made then; 0: at once, as far as is known. */
  of(stampNs: number): number {
    const index = this.#stampsNs.indexOf(stampNs);
    return index < 0 ? 0 : this.#delaysNs[index];
  }
}
