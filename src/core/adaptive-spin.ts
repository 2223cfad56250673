/**
 * How long to spin before sleeping. Waking a thread costs 20 to 60 us, so spinning pays only for traffic that returns
 * sooner; otherwise it takes the core from the thread that it waits for. After a series of useless spins it pauses,
 * longer each time (as KVM shrinks its halt polling: Linux, Documentation/virt/kvm/halt-polling.rst), and likewise
 * after a stall, when the system suspended the thread. A pause after useless spins ends early when enough work arrives
 * that a spin could have met; one after a stall, or of a thread that serves another thread of its process, takes its
 * full time.
 */

/** The longest spin of a thread that works for another one of its process: several loopback round trips. */
export const SPIN_MAX_NS = 50_000;
/**
 * Limit for a thread that does all of the work at its end. Its peer is most likely such a thread as well, and needs
 * time to compute the answer, with cold caches if it slept.
 */
export const LONE_SPIN_MAX_NS = 100_000;
/** Consecutive fruitless spins until spinning stops. */
const MISSES_MAX = 8;
/**
 * A gap of a thread that slept, of two spins at most, could have been bridged by one: some of it was waking up, at both
 * ends.
 */
const PROMISING_SPINS = 2;
/**
 * Such gaps, less the longer ones between them, end the shortest pause; a longer pause takes as many more as it is
 * longer, up to {@link PROMISES_MAX}.
 */
const PROMISES_MIN = 8;
/** Limits the cost of a trial's eight useless spins to 3 us per message. */
const PROMISES_MAX = 256;
/** One look takes a few microseconds; another thread's time slice takes milliseconds. */
const STALL_NS = 500_000;
const PAUSE_MIN_NS = 10e6;
const PAUSE_MAX_NS = 1e9;

/** Times are nanoseconds of any one monotonic clock. */
export class AdaptiveSpin {
  #misses = 0;
  #pauseNs = PAUSE_MIN_NS;
  #pausedUntilNs = Number.NEGATIVE_INFINITY;
  /** Promising gaps that this pause still needs to end early, and in all. */
  #promisesLeft = Number.POSITIVE_INFINITY;
  #promises = Number.POSITIVE_INFINITY;
  readonly #isAlone: boolean;
  readonly #spinNs: number;

  constructor(isAlone = false) {
    this.#isAlone = isAlone;
    this.#spinNs = isAlone ? LONE_SPIN_MAX_NS : SPIN_MAX_NS;
  }

  /** How long a wait that begins at `nowNs` may spin: 0, or {@link SPIN_MAX_NS}, or {@link LONE_SPIN_MAX_NS}. */
  budgetNs(nowNs: number): number {
    return nowNs < this.#pausedUntilNs ? 0 : this.#spinNs;
  }

  onGap(gapNs: number, nowNs: number): void {
    if (nowNs < this.#pausedUntilNs) {
      this.#onGapOfPause(gapNs);
      return;
    }
    if (gapNs <= this.#spinNs) {
      this.#misses = 0;
      this.#pauseNs = PAUSE_MIN_NS;
    } else if (++this.#misses === MISSES_MAX) {
      const promises = Math.min(PROMISES_MAX, (PROMISES_MIN * this.#pauseNs) / PAUSE_MIN_NS);
      this.#pause(nowNs, this.#isAlone ? promises : Number.POSITIVE_INFINITY);
    }
  }

  #onGapOfPause(gapNs: number): void {
    if (gapNs > PROMISING_SPINS * this.#spinNs) this.#promisesLeft = Math.min(this.#promises, this.#promisesLeft + 1);
    else if (--this.#promisesLeft <= 0) this.#pausedUntilNs = Number.NEGATIVE_INFINITY;
  }

  onLook(lookNs: number, nowNs: number): void {
    if (lookNs >= STALL_NS) this.#pause(nowNs, Number.POSITIVE_INFINITY);
  }

  #pause(nowNs: number, promises: number): void {
    this.#misses = 0;
    this.#promises = promises;
    this.#promisesLeft = promises;
    this.#pausedUntilNs = nowNs + this.#pauseNs;
    this.#pauseNs = Math.min(PAUSE_MAX_NS, 2 * this.#pauseNs);
  }
}

export class TrafficSpin {
  readonly #spin = new AdaptiveSpin(true);
  #sinceNs = 0;
  #hasHeard = false;

  onReceived(nowNs: number): void {
    this.#spin.onGap(nowNs - this.#sinceNs, nowNs);
    this.#sinceNs = nowNs;
    this.#hasHeard = true;
  }

  /** Something is sent: the time until then, in which the program processed input, was not a wait. */
  onSent(nowNs: number): void {
    if (!this.#hasHeard) return;
    this.#sinceNs = nowNs;
    this.#hasHeard = false;
  }

  looksAgain(nowNs: number): boolean {
    return nowNs - this.#sinceNs < this.#spin.budgetNs(nowNs);
  }
}
