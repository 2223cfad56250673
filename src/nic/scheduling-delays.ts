/**
 * Scheduling-delay compensation: records batches that left later than the start of their timers, because the system
 * suspended the thread between reading the clock and sending. Without it, a peer that had no time to answer looks
 * silent.
 *
 * Invariant: the last {@link REMEMBERED} are known. Earlier ones count as sent at once.
 */

/** Such batches are at least milliseconds apart, so a timer with more of them has run for a long time. */
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

  /** Delay between `stampNs` and the sending of the batch that was made then; 0: none is known. */
  of(stampNs: number): number {
    const index = this.#stampsNs.indexOf(stampNs);
    return index < 0 ? 0 : this.#delaysNs[index];
  }
}
