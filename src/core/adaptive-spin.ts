/**
 * How long to look again before going to sleep. Waking a thread costs 20 to 60 us, so for traffic that comes back sooner than that looking
 * is the faster way to wait; for all other traffic, and where there are more busy threads than cores, it only stands in the way of those
 * that one waits for.
 *
 * So it has to pay: after a row of spins that found nothing there are none for a while, longer each time that it happens again (as KVM
 * shrinks its halt polling: Linux, Documentation/virt/kvm/halt-polling.rst). The same after a stall, time that passed between two looks
 * although nothing was done: then the system took the processor away.
 */

/** The longest spin: several loopback round trips. */
export const SPIN_MAX_NS = 50_000;
/** Spins in vain, one after the other, until they stop. */
const MISSES_MAX = 8;
/** One look takes a few microseconds; a whole time slice of another thread takes milliseconds. */
const STALL_NS = 500_000;
const PAUSE_MIN_NS = 10e6;
const PAUSE_MAX_NS = 1e9;

/** Decides, wait by wait, how long one thread may spin before it sleeps. Times are nanoseconds of any one monotonic clock. */
export class AdaptiveSpin {
  #misses = 0;
  #pauseNs = PAUSE_MIN_NS;
  #pausedUntilNs = Number.NEGATIVE_INFINITY;

  /** How long a wait that begins at `nowNs` may spin: 0 or {@link SPIN_MAX_NS}. */
  budgetNs(nowNs: number): number {
    return nowNs < this.#pausedUntilNs ? 0 : SPIN_MAX_NS;
  }

  /** There was no work for `gapNs`, until `nowNs`. */
  onGap(gapNs: number, nowNs: number): void {
    if (nowNs < this.#pausedUntilNs) return;
    if (gapNs <= SPIN_MAX_NS) {
      this.#misses = 0;
      this.#pauseNs = PAUSE_MIN_NS;
    } else if (++this.#misses === MISSES_MAX) this.#pause(nowNs);
  }

  /** Two looks of one spin were `lookNs` apart, the second at `nowNs`. */
  onLook(lookNs: number, nowNs: number): void {
    if (lookNs >= STALL_NS) this.#pause(nowNs);
  }

  #pause(nowNs: number): void {
    this.#misses = 0;
    this.#pausedUntilNs = nowNs + this.#pauseNs;
    this.#pauseNs = Math.min(PAUSE_MAX_NS, 2 * this.#pauseNs);
  }
}
