/** Discrete events in virtual nanoseconds. Events of one time run in the order they were scheduled, so that a run repeats exactly. */

import TinyQueue from 'tinyqueue';

interface Event {
  readonly timeNs: number;
  readonly sequence: number;
  readonly action: () => void;
}

export class EventQueue {
  readonly #heap = new TinyQueue<Event>([], (a, b) => a.timeNs - b.timeNs || a.sequence - b.sequence);
  #sequence = 0;
  #nowNs = 0;

  get nowNs(): number {
    return this.#nowNs;
  }

  /** Time of the next event; Infinity when there is none. */
  get nextNs(): number {
    return this.#heap.peek()?.timeNs ?? Number.POSITIVE_INFINITY;
  }

  at(timeNs: number, action: () => void): void {
    this.#heap.push({ timeNs: Math.max(timeNs, this.#nowNs), sequence: this.#sequence++, action });
  }

  after(delayNs: number, action: () => void): void {
    this.at(this.#nowNs + delayNs, action);
  }

  /** Runs the next event; false when there is none. */
  step(): boolean {
    const event = this.#heap.pop();
    if (event === undefined) return false;
    this.#nowNs = event.timeNs;
    event.action();
    return true;
  }

  /**
   * Runs events until none is left, `untilNs` is reached, `done()` holds or `eventsMax` have run: a protocol that never comes to rest
   * must not hang a test. Returns the number of events run.
   */
  run(limits: { untilNs?: number; eventsMax?: number; done?: () => boolean } = {}): number {
    const untilNs = limits.untilNs ?? Number.POSITIVE_INFINITY;
    const eventsMax = limits.eventsMax ?? Number.POSITIVE_INFINITY;
    let count = 0;
    while (count < eventsMax && this.nextNs <= untilNs && limits.done?.() !== true) {
      if (!this.step()) break;
      count++;
    }
    if (untilNs !== Number.POSITIVE_INFINITY && this.nextNs > untilNs) this.#nowNs = untilNs;
    return count;
  }
}
