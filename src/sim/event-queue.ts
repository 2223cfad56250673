/**
 * Discrete events in virtual nanoseconds. Events of one time run in the order they were scheduled, so that a run repeats exactly.
 *
 * A 4-ary heap in flat arrays, ordered by (time, sequence): scheduling allocates nothing, as long as callers schedule functions that they
 * keep. There is no way to take an event back: whoever may change his mind looks, when it runs, whether it is still wanted.
 */

const CHILDREN_BITS = 2;
const CHILDREN = 1 << CHILDREN_BITS;
const NOTHING = (): void => {};

/** Virtual time, and what is to happen in it. */
export class EventQueue {
  #times = new Float64Array(64);
  #sequences = new Float64Array(64);
  readonly #actions: Array<() => void> = [];
  #size = 0;
  #sequence = 0;
  #nowNs = 0;

  /** Virtual time: that of the event that runs, or of the last one. */
  get nowNs(): number {
    return this.#nowNs;
  }

  /** Time of the next event; Infinity when there is none. */
  get nextNs(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#times[0];
  }

  /** An event at `timeNs`, or now if that has passed. */
  at(timeNs: number, action: () => void): void {
    if (this.#size === this.#times.length) this.#grow();
    const time = timeNs > this.#nowNs ? timeNs : this.#nowNs;
    const times = this.#times;
    const sequences = this.#sequences;
    const actions = this.#actions;
    let hole = this.#size++;
    while (hole > 0) {
      const parent = (hole - 1) >> CHILDREN_BITS;
      if (times[parent] <= time) break; // It was scheduled earlier: with an equal time it stays in front.
      times[hole] = times[parent];
      sequences[hole] = sequences[parent];
      actions[hole] = actions[parent];
      hole = parent;
    }
    times[hole] = time;
    sequences[hole] = this.#sequence++;
    actions[hole] = action;
  }

  /** Schedules `action` in `delayNs` from now; see {@link at}. */
  after(delayNs: number, action: () => void): void {
    this.at(this.#nowNs + delayNs, action);
  }

  /** Runs the next event; false when there is none. */
  step(): boolean {
    if (this.#size === 0) return false;
    const action = this.#actions[0];
    this.#nowNs = this.#times[0];
    this.#removeFirst();
    action();
    return true;
  }

  /**
   * Runs events until none is left, `untilNs` is reached, `done()` holds or `eventsMax` have run: a protocol that never comes to rest
   * must not hang a test. Returns the number of events run.
   */
  run(limits: { untilNs?: number; eventsMax?: number; done?: () => boolean } = {}): number {
    const untilNs = limits.untilNs ?? Number.POSITIVE_INFINITY;
    const eventsMax = limits.eventsMax ?? Number.POSITIVE_INFINITY;
    const { done } = limits;
    let count = 0;
    while (count < eventsMax && this.nextNs <= untilNs && (done === undefined || !done())) {
      if (!this.step()) break;
      count++;
    }
    if (untilNs !== Number.POSITIVE_INFINITY && this.nextNs > untilNs) this.#nowNs = untilNs;
    return count;
  }

  /** The last element falls from the top to where it belongs. */
  #removeFirst(): void {
    const size = --this.#size;
    const times = this.#times;
    const sequences = this.#sequences;
    const actions = this.#actions;
    const time = times[size];
    const sequence = sequences[size];
    const action = actions[size];
    actions[size] = NOTHING; // What ran must not be kept alive.
    if (size === 0) return;
    let hole = 0;
    for (let first = 1; first < size; first = (hole << CHILDREN_BITS) + 1) {
      const end = Math.min(first + CHILDREN, size);
      let least = first;
      for (let child = first + 1; child < end; child++) {
        const earlier = times[child] - times[least] || sequences[child] - sequences[least];
        if (earlier < 0) least = child;
      }
      if ((times[least] - time || sequences[least] - sequence) > 0) break;
      times[hole] = times[least];
      sequences[hole] = sequences[least];
      actions[hole] = actions[least];
      hole = least;
    }
    times[hole] = time;
    sequences[hole] = sequence;
    actions[hole] = action;
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2);
    times.set(this.#times);
    this.#times = times;
    const sequences = new Float64Array(times.length);
    sequences.set(this.#sequences);
    this.#sequences = sequences;
  }
}
