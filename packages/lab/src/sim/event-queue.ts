/**
 * Discrete events in virtual nanoseconds. Events of one time run in the order they were scheduled, so that a run
 * repeats exactly.
 *
 * Later events are in a heap (`time-heap.ts`), those of the present in a ring: scheduling allocates nothing, as long as
 * callers schedule functions that they keep. An event cannot be cancelled: an action that may become needless checks,
 * when it runs, whether it is still wanted.
 */

import { TimeHeap } from './time-heap.js';

const CAPACITY = 64;
const FIRST = -1;
const LAST = Number.POSITIVE_INFINITY;
const NOTHING = (): void => {};

export class EventQueue {
  /** Ordered by time, then by sequence number. */
  readonly #later = new TimeHeap();
  #sequence = 0;
  /** Of the event of the heap that runs, or ran last: those of this time before it have run. LAST: all have. */
  #running = LAST;
  #nowNs = 0;
  /**
   * What was scheduled for `#nowNs` when that had come: a ring, oldest at `#soonHead`. It was scheduled after all in
   * the heap that has this time.
   */
  #soon: Array<() => void> = new Array<() => void>(CAPACITY).fill(NOTHING);
  #soonHead = 0;
  #soonCount = 0;
  /** Events that would do nothing may be left out: see busy-time.ts. */
  readonly isSparse: boolean;

  constructor({ isSparse = false }: { readonly isSparse?: boolean } = {}) {
    this.isSparse = isSparse;
  }

  get nowNs(): number {
    return this.#nowNs;
  }

  get nextNs(): number {
    if (this.#soonCount > 0) return this.#nowNs;
    return this.#later.nextNs;
  }

  at(timeNs: number, action: () => void): void {
    if (!(timeNs > this.#nowNs)) {
      if (this.#soonCount === this.#soon.length) this.#growSoon();
      this.#soon[(this.#soonHead + this.#soonCount++) & (this.#soon.length - 1)] = action;
      return;
    }
    this.#later.add(timeNs, this.#sequence++, action);
  }

  /** The place in the order of events of one time that an event scheduled now for the future would have. */
  reserve(): number {
    return this.#sequence++;
  }

  /** Whether an event at `timeNs` with a reserved place would have run. */
  hasPassed(timeNs: number, place: number): boolean {
    return timeNs < this.#nowNs || (timeNs === this.#nowNs && place < this.#running);
  }

  /** An event in a reserved place, which must not have {@link hasPassed}. */
  atReserved(timeNs: number, place: number, action: () => void): void {
    this.#later.add(timeNs, place, action);
  }

  after(delayNs: number, action: () => void): void {
    this.at(this.#nowNs + delayNs, action);
  }

  step(): boolean {
    return this.#stepUntil(Number.POSITIVE_INFINITY);
  }

  /** Runs the next event, unless it is later than `untilNs`. */
  #stepUntil(untilNs: number): boolean {
    const later = this.#later;
    const laterNs = later.nextNs;
    if (this.#soonCount > 0 && laterNs > this.#nowNs) {
      if (this.#nowNs > untilNs) return false;
      const place = this.#soonHead;
      const action = this.#soon[place];
      this.#soon[place] = NOTHING; // Releases the reference.
      this.#soonHead = (place + 1) & (this.#soon.length - 1);
      this.#soonCount--;
      this.#running = LAST; // It was scheduled after all that the heap has of this time.
      action();
      return true;
    }
    if (laterNs > untilNs || later.isEmpty) return false;
    this.#nowNs = laterNs;
    this.#running = later.firstKey;
    later.take()();
    return true;
  }

  /** None may be due before, or at that time. */
  pass(timeNs: number): void {
    this.#nowNs = timeNs;
    this.#running = LAST;
  }

  /** Something happens at `timeNs` before the events of that time. None may be due before. */
  passBefore(timeNs: number): void {
    this.#nowNs = timeNs;
    this.#running = FIRST;
  }

  /**
   * Runs events until none is left, `untilNs` is reached, `done()` holds or `eventsMax` have run: a protocol that never
   * becomes idle must not hang a test.
   */
  run(limits: { untilNs?: number | undefined; eventsMax?: number; done?: (() => boolean) | undefined } = {}): number {
    const untilNs = limits.untilNs ?? Number.POSITIVE_INFINITY;
    const eventsMax = limits.eventsMax ?? Number.POSITIVE_INFINITY;
    const { done } = limits;
    let count = 0;
    while (count < eventsMax && (done === undefined || !done()) && this.#stepUntil(untilNs)) count++;
    if (untilNs !== Number.POSITIVE_INFINITY && untilNs >= this.#nowNs && this.nextNs > untilNs) this.pass(untilNs);
    return count;
  }

  #growSoon(): void {
    const head = this.#soonHead;
    this.#soon = [...this.#soon.slice(head), ...this.#soon.slice(0, head), ...this.#soon.map(() => NOTHING)];
    this.#soonHead = 0;
  }
}
