/**
 * How long to look again before going to sleep. Waking a thread costs 20 to 60 us, so for traffic that comes back sooner than that looking
 * is the faster way to wait; for all other traffic, and where there are more busy threads than cores, it only stands in the way of those
 * that one waits for.
 *
 * So it has to pay: after a row of spins that found nothing there are none for a while, longer each time that it happens again (as KVM
 * shrinks its halt polling: Linux, Documentation/virt/kvm/halt-polling.rst). The same after a stall, time that passed between two looks
 * although nothing was done: then the system took the processor away.
 *
 * Traffic may change meanwhile: code gets warm, a transfer ends and short messages follow. So a pause behind spins in vain ends early when enough work has come
 * that a spin could have met; that takes more work, too, each time that it was in vain again. A pause behind a stall takes its time, and so does each of a thread
 * that works for another thread of its process: where both lack a core, a spin makes work come late that would have come soon.
 */

/** The longest spin of a thread that works for another one of its process: several loopback round trips. */
export const SPIN_MAX_NS = 50_000;
/** That of a thread that does all of the work at its end. Its peer is most likely such a thread, too, and has to make the answer meanwhile, from cold caches if it slept. */
export const LONE_SPIN_MAX_NS = 100_000;
/** Spins in vain, one after the other, until they stop. */
const MISSES_MAX = 8;
/** A gap of a thread that slept, of two spins at most, could have been bridged by one: some of it was waking up, at both ends. */
const PROMISING_SPINS = 2;
/** Such gaps, less the longer ones between them, end the shortest pause; a longer pause takes as many more as it is longer, up to {@link PROMISES_MAX}. */
const PROMISES_MIN = 8;
/** So the eight spins of a trial in vain cost 3 us a message at most. */
const PROMISES_MAX = 256;
/** One look takes a few microseconds; a whole time slice of another thread takes milliseconds. */
const STALL_NS = 500_000;
const PAUSE_MIN_NS = 10e6;
const PAUSE_MAX_NS = 1e9;

/** Decides, wait by wait, how long one thread may spin before it sleeps. Times are nanoseconds of any one monotonic clock. */
export class AdaptiveSpin {
  #misses = 0;
  #pauseNs = PAUSE_MIN_NS;
  #pausedUntilNs = Number.NEGATIVE_INFINITY;
  /** Promising gaps that this pause still needs to end early, and in all. */
  #promisesLeft = Number.POSITIVE_INFINITY;
  #promises = Number.POSITIVE_INFINITY;
  readonly #isAlone: boolean;
  readonly #spinNs: number;

  /** `isAlone`: the thread does all of the work at its end. It spins for longer, and ends pauses early. */
  constructor(isAlone = false) {
    this.#isAlone = isAlone;
    this.#spinNs = isAlone ? LONE_SPIN_MAX_NS : SPIN_MAX_NS;
  }

  /** How long a wait that begins at `nowNs` may spin: 0, or {@link SPIN_MAX_NS}, or {@link LONE_SPIN_MAX_NS}. */
  budgetNs(nowNs: number): number {
    return nowNs < this.#pausedUntilNs ? 0 : this.#spinNs;
  }

  /** There was no work for `gapNs`, until `nowNs`: nothing came, and nothing was to be sent. */
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

  /** Two looks of one spin were `lookNs` apart, the second at `nowNs`. */
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

/** The waits of a thread that does all of the work at its end: each begins with what has come, and anew with the first that it sends behind that. */
export class TrafficSpin {
  readonly #spin = new AdaptiveSpin(true);
  /** Since then it has waited for others. */
  #sinceNs = 0;
  /** Something has come and nothing was sent since. Who only sends waits for nobody. */
  #hasHeard = false;

  /** Something came, and was found at `nowNs`. */
  onReceived(nowNs: number): void {
    this.#spin.onGap(nowNs - this.#sinceNs, nowNs);
    this.#sinceNs = nowNs;
    this.#hasHeard = true;
  }

  /** Something is sent: what the program did until then with what had come was no waiting. */
  onSent(nowNs: number): void {
    if (!this.#hasHeard) return;
    this.#sinceNs = nowNs;
    this.#hasHeard = false;
  }

  /** Whether to look again before going to sleep. */
  looksAgain(nowNs: number): boolean {
    return nowNs - this.#sinceNs < this.#spin.budgetNs(nowNs);
  }
}
