/**
 * How long to look again before going to sleep. Waking a thread costs 20 to 60 us, so for traffic that comes back sooner than that looking
 * is the faster way to wait; for all other traffic it burns a core.
 *
 * The budget follows the gaps between work, as KVM's halt polling does (Linux, Documentation/virt/kvm/halt-polling.rst): full while gaps are
 * of the size that looking would have bridged, halved by each that is longer, down to nothing. A stall, time that passed although nothing
 * was done, means that the system took the processor away: there are more busy threads than cores, and spinning stands in the way of
 * those that one waits for. Then there is none for a while.
 */

/** The longest spin: several loopback round trips. */
export const SPIN_MAX_NS = 50_000;
/** A gap up to this long may be a sleep that looking would have shortened: two wake-ups and the work between them. */
const BRIDGEABLE_NS = 250_000;
const SPIN_MIN_NS = 6_000;
/** One look takes a few microseconds; a whole time slice of another thread takes milliseconds. */
const STALL_NS = 500_000;
const PAUSE_MIN_NS = 20e6;
const PAUSE_MAX_NS = 1e9;

export class AdaptiveSpin {
  #budgetNs = SPIN_MAX_NS;
  #pauseNs = PAUSE_MIN_NS;
  #pausedUntilNs = Number.NEGATIVE_INFINITY;

  /** How long a wait that begins at `nowNs` may spin: 0 to {@link SPIN_MAX_NS}. */
  budgetNs(nowNs: number): number {
    return nowNs < this.#pausedUntilNs ? 0 : this.#budgetNs;
  }

  /** There was no work for `gapNs`, until now. */
  onGap(gapNs: number): void {
    if (gapNs <= BRIDGEABLE_NS) this.#budgetNs = SPIN_MAX_NS;
    else this.#budgetNs = this.#budgetNs / 2 < SPIN_MIN_NS ? 0 : this.#budgetNs / 2;
  }

  /** Two looks of one spin were `lookNs` apart. */
  onLook(lookNs: number, nowNs: number): void {
    if (lookNs < STALL_NS) return;
    // Stalls soon after a pause: the system is still as busy.
    const soon = nowNs - this.#pausedUntilNs < 10 * this.#pauseNs;
    this.#pauseNs = soon ? Math.min(PAUSE_MAX_NS, 2 * this.#pauseNs) : PAUSE_MIN_NS;
    this.#pausedUntilNs = nowNs + this.#pauseNs;
  }
}
