/**
 * Discrete events in virtual nanoseconds. Events of one time run in the order they were scheduled, so that a run repeats exactly.
 *
 * A 4-ary heap in flat arrays, ordered by (time, sequence), and beside it a ring of what is to happen now: scheduling allocates nothing, as long as
 * callers schedule functions that they keep. There is no way to take an event back: whoever may change his mind looks, when it runs, whether it is
 * still wanted.
 *
 * The event that runs leaves a hole at the top of the heap. Most events schedule another, and that one falls from the hole to its place: one way
 * through the heap for both.
 */

const CHILDREN_BITS = 2;
const CHILDREN = 1 << CHILDREN_BITS;
const CAPACITY = 64;
const NOTHING = (): void => {};

/** Virtual time, and what is to happen in it. */
export class EventQueue {
  /** By place in the heap. */
  #times = new Float64Array(CAPACITY);
  #sequences = new Float64Array(CAPACITY);
  /** By place in the heap: the slot of its action. Behind the heap: the free slots. */
  #slots = Int32Array.from({ length: CAPACITY }, (_, slot) => slot);
  /** By slot: so that what moves in the heap is numbers. */
  readonly #actions: Array<() => void> = new Array<() => void>(CAPACITY).fill(NOTHING);
  /** Places in use, the hole included. */
  #size = 0;
  /** The event at the top has been taken out, and nothing has been put there yet. */
  #hasHole = false;
  #sequence = 0;
  #nowNs = 0;
  /** What was scheduled for `#nowNs` when that had come: a ring, oldest at `#soonHead`. It was scheduled after all that the heap has of this time. */
  #soon: Array<() => void> = new Array<() => void>(CAPACITY).fill(NOTHING);
  #soonHead = 0;
  #soonCount = 0;

  /** Virtual time: that of the event that runs, or of the last one. */
  get nowNs(): number {
    return this.#nowNs;
  }

  /** Time of the next event; Infinity when there is none. */
  get nextNs(): number {
    if (this.#soonCount > 0) return this.#nowNs;
    if (this.#hasHole) this.#fillHole();
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#times[0];
  }

  /** An event at `timeNs`, or now if that has passed. */
  at(timeNs: number, action: () => void): void {
    if (!(timeNs > this.#nowNs)) {
      if (this.#soonCount === this.#soon.length) this.#growSoon();
      this.#soon[(this.#soonHead + this.#soonCount++) & (this.#soon.length - 1)] = action;
      return;
    }
    const sequence = this.#sequence++;
    if (this.#hasHole) {
      this.#hasHole = false;
      const slot = this.#slots[0];
      this.#actions[slot] = action;
      this.#fall(timeNs, sequence, slot);
      return;
    }
    if (this.#size === this.#times.length) this.#grow();
    const times = this.#times;
    const sequences = this.#sequences;
    const slots = this.#slots;
    let hole = this.#size++;
    const slot = slots[hole];
    this.#actions[slot] = action;
    while (hole > 0) {
      const parent = (hole - 1) >> CHILDREN_BITS;
      if (times[parent] <= timeNs) break; // It was scheduled earlier: with an equal time it stays in front.
      times[hole] = times[parent];
      sequences[hole] = sequences[parent];
      slots[hole] = slots[parent];
      hole = parent;
    }
    times[hole] = timeNs;
    sequences[hole] = sequence;
    slots[hole] = slot;
  }

  /** Schedules `action` in `delayNs` from now; see {@link at}. */
  after(delayNs: number, action: () => void): void {
    this.at(this.#nowNs + delayNs, action);
  }

  /** Runs the next event; false when there is none. */
  step(): boolean {
    if (this.#hasHole) this.#fillHole();
    if (this.#soonCount > 0 && (this.#size === 0 || this.#times[0] > this.#nowNs)) {
      const place = this.#soonHead;
      const action = this.#soon[place];
      this.#soon[place] = NOTHING; // What ran must not be kept alive.
      this.#soonHead = (place + 1) & (this.#soon.length - 1);
      this.#soonCount--;
      action();
      return true;
    }
    if (this.#size === 0) return false;
    const slot = this.#slots[0];
    const action = this.#actions[slot];
    this.#actions[slot] = NOTHING;
    this.#nowNs = this.#times[0];
    this.#hasHole = true; // Also if the action throws: a hole is no damage.
    action();
    return true;
  }

  /** Time passes to `timeNs` without an event of this queue. None may be due before. */
  pass(timeNs: number): void {
    this.#nowNs = timeNs;
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
    if (untilNs !== Number.POSITIVE_INFINITY && untilNs > this.#nowNs && this.nextNs > untilNs) this.#nowNs = untilNs;
    return count;
  }

  /** The last element takes the place of the one that ran. */
  #fillHole(): void {
    this.#hasHole = false;
    const last = --this.#size;
    const slots = this.#slots;
    const slot = slots[last];
    slots[last] = slots[0];
    if (last > 0) this.#fall(this.#times[last], this.#sequences[last], slot);
  }

  /** An element falls from the hole at the top to where it belongs. */
  #fall(time: number, sequence: number, slot: number): void {
    const size = this.#size;
    const times = this.#times;
    const sequences = this.#sequences;
    const slots = this.#slots;
    let hole = 0;
    for (let first = 1; first < size; first = (hole << CHILDREN_BITS) + 1) {
      const end = Math.min(first + CHILDREN, size);
      let least = first;
      let leastTime = times[first];
      for (let child = first + 1; child < end; child++) {
        const childTime = times[child];
        if (childTime > leastTime) continue;
        if (childTime === leastTime && sequences[child] > sequences[least]) continue;
        least = child;
        leastTime = childTime;
      }
      if (leastTime > time || (leastTime === time && sequences[least] > sequence)) break;
      times[hole] = leastTime;
      sequences[hole] = sequences[least];
      slots[hole] = slots[least];
      hole = least;
    }
    times[hole] = time;
    sequences[hole] = sequence;
    slots[hole] = slot;
  }

  #grow(): void {
    const capacity = this.#times.length * 2;
    const times = new Float64Array(capacity);
    times.set(this.#times);
    this.#times = times;
    const sequences = new Float64Array(capacity);
    sequences.set(this.#sequences);
    this.#sequences = sequences;
    const slots = Int32Array.from({ length: capacity }, (_, slot) => slot);
    slots.set(this.#slots);
    this.#slots = slots;
  }

  #growSoon(): void {
    const head = this.#soonHead;
    this.#soon = [...this.#soon.slice(head), ...this.#soon.slice(0, head), ...this.#soon.map(() => NOTHING)];
    this.#soonHead = 0;
  }
}
